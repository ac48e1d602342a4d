"""A training run from beginning to end, the same on every rank and for every task (task.py).

Each step takes a global batch (order.py), splits it over the ranks (balancers.py), computes the gradients of each
rank's rows (gradients.py), sums them by one all-reduce (exchange.py), and updates the weights (optimiser.py). What
ranks must agree on (the split, when to stop or to save) follows from what the all-reduce brought (run_control.py). Do
not let one rank decide by what only it knows, such as its clock: the others would wait for it for ever.

A result depends on the data, the settings and the seed. The number of ranks, the splits and interruptions change it
only by the order of floating-point sums: dropout, too, depends on seed, step and row alone (dropout.py).
"""

from contextlib import ExitStack
from typing import Any

import torch

from corpus.files import indented_json
from trainer import start
from trainer.asynchronous import AsynchronousSteps
from trainer.clock import Activity, Clock, step_timer
from trainer.computing.optimiser import Optimiser
from trainer.computing.sleeping import sleeping_where_asked
from trainer.config import Slowdown, TrainConfig
from trainer.distributed import drift, failures, memory, parameter_server
from trainer.distributed.ddp import SummingComputer
from trainer.distributed.exchange import GradientExchange
from trainer.distributed.ranks import Ranks, StopRequest
from trainer.output import checkpoint
from trainer.output.checkpoint import RunProgress
from trainer.output.checkpoint_schedule import Checkpointer
from trainer.output.files import CHECKPOINTS, SUMMARY, write_whole
from trainer.output.reporter import Reporter
from trainer.output.throughput import Throughput
from trainer.rate_measurement import measure_initial_rates, measure_own_rates
from trainer.run_control import RunControl
from trainer.steps import EpochSteps, Run, SynchronousSteps
from trainer.task import TEST, TRAINING, VALIDATION, Coming, task_class

_STALENESS_A_RANK = 4


def train(config: TrainConfig, ranks: Ranks) -> dict[str, Any]:
    """Train, and return the content of summary.json. Raises TrainingError, the same on all ranks, if it cannot."""
    clock = Clock()
    with StopRequest() as stop, memory.convert_errors(ranks.device):
        return _train(config, ranks, clock, stop)


def _train(config: TrainConfig, ranks: Ranks, clock: Clock, stop: StopRequest) -> dict[str, Any]:
    # The data, the task, and the progress of the run before.
    config = start.with_automatic_resume(config, ranks)
    secret = (
        parameter_server.common_secret(ranks, trusts_network=config.trust_network) if config.is_asynchronous else b""
    )
    kind = task_class(config.model)
    data = start.load_data(kind, config, ranks, lambda: stop.made)
    saved, config, notes = start.load_checkpoint(config, ranks, data)
    config, data, told = (config, data, []) if saved else kind.begun(config, ranks, data)
    notes += told
    order = start.make_order(config, ranks, rows=data.sizes[TRAINING], saved=saved)
    epochs = config.epochs_for(order.steps)
    torch.manual_seed(config.seed)
    task = kind(config, ranks, data)
    together = task.optimisation(config)
    optimiser, progress = Optimiser(task.model, task.tables, together, sparse_tables=task.sparse_tables), RunProgress()
    with ranks.agreement():
        if saved:
            where = config.output / CHECKPOINTS
            progress = checkpoint.restore(saved, task.model, optimiser, task.restore, where=where)

    # The ranks' gradients, their exchange, and the split of each step.
    slowdown = config.slow.get(ranks.rank, Slowdown(1.0))
    timer = step_timer(ranks.device, slowed=ranks.rank in config.slow or bool(config.sleep))
    alone = sleeping_where_asked(task.gradient_computer(timer), config.sleep, rank=ranks.rank, timer=timer)
    overlapping = config.exchange == "ddp"
    exchange = GradientExchange(
        task.model,
        task.tables,
        timer=timer,
        clip_norm=config.clip_norm,
        bits=config.gradient_bits,
        sparse_tables=task.sparse_tables,
        summed=overlapping,
    )
    compute = SummingComputer(alone, timer=timer, bits=config.gradient_bits) if overlapping else alone
    sparse = exchange.is_sparse_cheaper(task.touched_rows(order.batch(0, 0)))

    def steps_done() -> int:
        """The steps of the whole run so far."""
        return order.steps * progress.epoch + progress.step

    done = steps_done()
    with clock.during(Activity.RATES):
        rates = measure_initial_rates(alone, optimiser, config, total=order.size(0), slowness=slowdown.at(steps_done()))
    balancer = start.make_balancer(config, ranks, order, rates)
    throughput = Throughput(progress, clock, rates)

    def state() -> dict[str, Any]:
        return {
            "format": checkpoint.FORMAT,
            "config": {**config.plain(), "epochs": epochs},
            "digest": data.digest,
            "global_batch": order.global_batch,
            "launchers": sorted(ranks.launchers),
            "progress": {**vars(progress), "seconds": throughput.seconds},
            "model": task.model.state_dict(),
            "optimiser": optimiser.state(),
            "task": task.state(),
        }

    def evaluate(part: str) -> dict[str, Any] | None:
        """The loss and measures on a part of the rows, the same on all ranks. Returns None, and stops the run, if it is
        asked to stop; the resumed run then evaluates this part."""
        with clock.during(Activity.EVALUATION):
            found = task.evaluate(part, split=balancer.split(data.sizes[part]), stop=lambda: stop.made)
        if found is None:
            control.stopped = True
        else:
            control.require_finite(f"loss on the {part} rows", found["loss"], steps_done() - 1)
        return found

    def save() -> None:
        """Write a checkpoint, after a check of the latest loss: weights that it spoilt must not be saved."""
        control.handle(exchange.drain())
        control.save_due = False
        if checkpointer.save(steps_done(), awaited=progress.step < order.steps and not control.stopped):
            task.checkpoint_written()

    clock.turn_to(Activity.OTHER)
    with (
        ExitStack() as stack,
        Reporter(config, ranks, rows=epochs * order.rows, seen=progress.rows_seen, fresh=not saved) as reporter,
    ):
        checkpointer = Checkpointer(config, state, reporter, clock, throughput, done if saved else None)
        steps = epochs * order.steps
        control = RunControl(
            progress, balancer, throughput, reporter, checkpointer, steps=steps, precision=task.precision
        )
        reporter.start(
            config, ranks, data, order, precision=task.precision, epochs=epochs, done=done, rates=rates, notes=notes
        )
        run = Run(
            config=config,
            ranks=ranks,
            task=task,
            order=order,
            steps=steps,
            compute=compute,
            timer=timer,
            slowdown=slowdown,
            progress=progress,
            control=control,
            throughput=throughput,
            reporter=reporter,
            checkpointer=checkpointer,
            stop=stop,
            save=save,
        )
        epoch_steps: EpochSteps
        if config.is_asynchronous:
            connections = stack.enter_context(parameter_server.joined(ranks, secret))
            epoch_steps = AsynchronousSteps(
                run, connections, bound=config.staleness or _STALENESS_A_RANK * ranks.world_size
            )
        else:
            epoch_steps = SynchronousSteps(
                run, exchange=exchange, optimiser=optimiser, balancer=balancer, sparse=sparse
            )
        failures.mark_begun()
        while progress.epoch < epochs and not control.stopped:
            with clock.during(Activity.WAITING):
                coming = run.begin_epoch()
            if coming is not Coming.ROWS:
                control.stopped = coming is Coming.STOP
                break
            with clock.during(Activity.TRAINING):
                epoch_steps.take_all()
                if not control.stopped:
                    reporter.weights_synchronised(drift.synchronise(task.model, optimiser, ranks))
                    if control.save_due:
                        save()
            if not control.stopped and task.judges_epoch and (validation := evaluate(VALIDATION)):
                progress.validation = validation
                loss_of_epoch = progress.loss_sum / order.rows
                reporter.write("epoch", epoch=progress.epoch + 1, loss=loss_of_epoch, validation=validation)
            if not control.stopped:
                run.end_epoch()
        reporter.close_bar()
        save()
        # Nothing is chosen by the test rows, so they are evaluated only once.
        tested = None if control.stopped else evaluate(TEST)
        timer.finish()
        if tested:
            reporter.notes(task.closing_notes())
            reporter.write("test", epoch=progress.epoch, **tested)
            with clock.during(Activity.RATES):
                split, slowness = balancer.split(order.size(0)), slowdown.at(steps_done())
                throughput.add_final_rates(measure_own_rates(alone, optimiser, config, split=split, slowness=slowness))
        summary = {
            **task.summary_measures(tested),
            **throughput.summary(ranks, timer),
            "rows_seen": progress.rows_seen,
            "rows": order.rows,
            "epochs": epochs,
            "validation": progress.validation,
            "stopped": control.stopped,
            "steps": steps_done(),
            "global_batch": order.global_batch,
            "world_size": ranks.world_size,
            "split": balancer.split(order.size(0)).tolist(),
            **task.summary_settings(),
            "digest": data.digest,
            "slept": bool(config.sleep),
            **epoch_steps.summary(),
        }
        if ranks.is_first:
            if (tested or task.saves_when_stopped) and not config.sleep:
                task.save(config.output, epoch=progress.epoch, tested=tested or {})
            write_whole(config.output / SUMMARY, indented_json(summary))
        reporter.write("end", **summary)
    return summary
