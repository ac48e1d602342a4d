"""Data-parallel training over GPUs of unequal speed, for any PyTorch program with `torch.distributed`.

A global batch has the same rows on any number of ranks; how many of them each rank computes follows its measured speed,
so that no rank waits for another:

    batches = BalancedBatches(len(dataset), global_batch=256)
    loader = DataLoader(dataset, batch_sampler=batches)
    model = DistributedDataParallel(model)
    batches.measure(model)
    for epoch in range(epochs):
        for inputs, labels in loader:
            with batches.step() as step:
                loss = loss_function(model(inputs), labels)  # the mean over this rank's rows
                (loss * step.loss_scale).backward()
            optimiser.step()
            optimiser.zero_grad()

`loss_scale` makes DDP's mean over the ranks the mean over the rows of the global batch.

`shoal.balance.transformers` does this in the Trainer of Hugging Face's library, `shoal.balance.lightning` in
Lightning's.
"""

from shoal.balance.batches import BalancedBatches, Step

__all__ = ["BalancedBatches", "Step"]
