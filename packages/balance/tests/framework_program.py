"""Example user programs that train with Hugging Face's or Lightning's Trainer.

The argument is a JSON object with options, such as the framework (`by`) and the folder for results (`output`). The
program writes the losses of all steps into this folder.
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from program import CLOCK, RANK, WORLD
from shoal_balance.torch import BalancedBatches
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

ROWS, GLOBAL_BATCH, WORDS, LENGTH = 121, 16, 40, 6


def advance_clock(model, slow, argument=""):
    def wait(_, given, named):
        rows = len(named[argument] if argument else given[0])
        CLOCK.now += slow[RANK] * rows if slow else 0.0

    model.register_forward_pre_hook(wait, with_kwargs=True)


def words():
    """Return texts, (rows, words), and labels, (rows,): 1 if the first word id is in the upper half."""
    found = torch.randint(WORDS, (ROWS, LENGTH), generator=torch.Generator().manual_seed(1))
    return found, (found[:, 0] >= WORDS // 2).long()


def train_with_transformers(options):
    from shoal_balance.transformers import BalancedTrainer
    from transformers import GPT2Config, GPT2LMHeadModel, TrainingArguments

    texts, _ = words()
    torch.manual_seed(0)
    size = {"n_positions": LENGTH, "n_embd": 16, "n_layer": 1, "n_head": 2}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **size))
    padded = torch.arange(LENGTH) >= 2 + torch.arange(ROWS)[:, None] % 5  # rows have unequal numbers of tokens
    rows = [{"input_ids": text, "labels": text.masked_fill(no, -100)} for text, no in zip(texts, padded, strict=True)]
    advance_clock(model, options.get("slow", []), "input_ids")
    arguments = TrainingArguments(
        output_dir=options["output"],
        per_device_train_batch_size=options.get("batch", GLOBAL_BATCH) // WORLD,
        num_train_epochs=options.get("epochs", 2),
        max_steps=options.get("stop_after", -1),
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        max_grad_norm=0.3,
        logging_steps=1,
        save_steps=options.get("stop_after", 1000),
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = BalancedTrainer(model=model, args=arguments, train_dataset=rows, rebalance_every=4)
    trainer.train(resume_from_checkpoint=options.get("resume"))
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    return {"losses": losses, "shares": trainer.batches.shares}


def train_with_lightning(options):
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import ModelCheckpoint
    from shoal_balance.lightning import Balance

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.EmbeddingBag(WORDS, 16), nn.Linear(16, 2))
            self.lengths = []

        def train_dataloader(self):
            self.batches = BalancedBatches(ROWS, global_batch=GLOBAL_BATCH, rebalance_every=4)
            workers = options.get("workers", 0)
            return DataLoader(
                TensorDataset(*words()),
                batch_sampler=self.batches,
                num_workers=workers,
                multiprocessing_context="spawn" if workers else None,  # a fork of a process with gloo threads may hang
            )

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.5)

        def training_step(self, batch, _):
            texts, labels = batch
            CLOCK.now += options["slow"][RANK] * len(texts) if options.get("slow") else 0.0
            return cross_entropy(self.layers(texts), labels)

        def on_before_optimizer_step(self, _):
            """Record the norm of the gradients, which are the same on all ranks. The loss differs between ranks."""
            self.lengths.append(sum(float(each.grad.norm()) for each in self.parameters() if each.grad is not None))

    torch.manual_seed(0)
    module = Module()
    saves = ModelCheckpoint(options["output"], "{step}", every_n_train_steps=options.get("stop_after", 1000))
    trainer = pl.Trainer(
        accelerator="cpu",
        strategy="ddp" if WORLD > 1 else "auto",
        devices=WORLD,
        use_distributed_sampler=False,
        callbacks=[Balance(), saves],
        max_epochs=2,
        max_steps=options.get("stop_after", -1),
        gradient_clip_val=0.3,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, ckpt_path=options.get("resume"))
    return {"losses": module.lengths, "shares": module.batches.shares}


def main(options):
    torch.set_num_threads(1)
    output = Path(options["output"])
    output.mkdir(exist_ok=True, parents=True)
    found = {"transformers": train_with_transformers, "lightning": train_with_lightning}[options["by"]](options)
    if RANK == 0:
        output.with_suffix(".json").write_text(json.dumps(found))
    if dist.is_initialized():
        dist.barrier()  # otherwise gloo threads may abort a rank after another rank has exited
        dist.destroy_process_group()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
