"""The sources of one reader, as one sequence of lines.

All readers share the files by their names, so that each is read by one. Of the sockets the first belongs to reader 0,
the second to reader 1, and so on in turn.
"""

from collections.abc import Callable, Iterator

from corpus.stream.lines import Batch
from corpus.stream.part_files import Files
from corpus.stream.parts import Position
from corpus.stream.sockets import Socket
from corpus.stream.stream_settings import StreamSettings, is_socket


class Sources:
    def __init__(self, settings: StreamSettings, reader: int, clock: Callable[[], float]) -> None:
        sockets = [address for address in settings.sources if is_socket(address)]
        files = tuple(address for address in settings.sources if not is_socket(address))
        self._sockets = [
            Socket(address, follow=settings.follow, clock=clock)
            for number, address in enumerate(sockets)
            if number % settings.readers == reader
        ]
        self._files = (
            Files(files, follow=settings.follow, reader=reader, readers=settings.readers, clock=clock)
            if files
            else None
        )

    def batches(self, after: Position) -> Iterator[Batch | None]:
        """The lines after a position, from each source in turn; None where none has anything for now."""
        active = [] if self._files is None else [self._files.batches(after)]
        active += [each.batches(after.offsets.get(each.address, 0)) for each in self._sockets]
        while active:
            idle = True
            for source in list(active):
                try:
                    batch = next(source)
                except StopIteration:
                    active.remove(source)
                    continue
                if batch is not None:
                    idle = False
                    yield batch
            if idle and active:
                yield None

    def tell_safe(self, position: Position) -> None:
        """Report to the senders of sockets what is in parts."""
        for each in self._sockets:
            each.tell_safe(position.offsets.get(each.address, 0))
