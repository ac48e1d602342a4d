"""Train a small ResNet on generated images with DDP and `shoal_balance.torch` over GPUs of unequal speed.

    torchrun --nproc-per-node 2 examples/unequal_gpus.py

Without GPUs the ranks use the machine's CPU cores. `SLOW_RANK=1` makes rank 1 compute about four times as much for each
row, to show the balancer at work.
"""

import os
from typing import cast

import torch
import torch.distributed as dist
from shoal_balance.torch import BalancedBatches
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

IMAGES, CLASSES, GLOBAL_BATCH, EPOCHS = 2048, 4, 64, 4


class Block(nn.Module):
    """Residual block with group normalisation, because batch normalisation would use the statistics of one rank's
    rows."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.GroupNorm(4, channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.GroupNorm(4, channels),
        )

    def forward(self, images: Tensor) -> Tensor:
        outputs: Tensor = (images + self.layers(images)).relu()
        return outputs


def generated_images() -> TensorDataset:
    """Return images of noise with one bright quarter. The label is the number of the bright quarter."""
    torch.manual_seed(0)
    labels = torch.randint(CLASSES, (IMAGES,))
    images = torch.randn(IMAGES, 1, 16, 16)
    for image, label in zip(images, labels.tolist(), strict=True):
        row, column = 8 * (label // 2), 8 * (label % 2)
        image[:, row : row + 8, column : column + 8] += 0.5
    return TensorDataset(images, labels)


def main() -> None:
    gpus = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpus else "gloo")
    rank = dist.get_rank()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)

    batches = BalancedBatches(IMAGES, global_batch=GLOBAL_BATCH, device=device)
    loader = DataLoader(generated_images(), batch_sampler=batches)
    torch.manual_seed(0)
    plain = nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1), Block(16), Block(16), nn.Flatten(), nn.LazyLinear(CLASSES)
    )
    plain(torch.zeros(1, 1, 16, 16))
    model = DistributedDataParallel(plain.to(device))
    batches.measure(model)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)

    for epoch in range(EPOCHS):
        sums = torch.zeros(2, device=device)
        for images, labels in loader:
            with batches.step() as step:
                outputs = cast(Tensor, model(images.to(device)))
                if os.environ.get("SLOW_RANK") == str(rank):
                    with torch.no_grad():
                        plain(images.repeat(9, 1, 1, 1).to(device))
                loss = cross_entropy(outputs, labels.to(device))
                (loss * step.loss_scale).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            optimiser.zero_grad()
            right = (outputs.argmax(1).cpu() == labels).sum()
            sums += torch.tensor([loss.item() * step.rows, float(right) * (step.rows > 0)], device=device)
        dist.all_reduce(sums)
        if rank == 0:
            loss_sum, right_sum = (sums / IMAGES).tolist()
            print(
                f"epoch {epoch + 1}: loss {loss_sum:.3f}, accuracy {right_sum:.1%}, rows of each rank {batches.shares}"
            )
    dist.barrier()  # otherwise gloo's threads may abort a rank that exits first
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
