"""Example user program that trains with Hugging Face's Trainer.

The argument is a JSON object with options, such as the folder for results (`output`). The program writes the losses of
all steps beside this folder.
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from program import CLOCK, RANK, WORLD
from shoal_balance.transformers import BalancedTrainer
from transformers import GPT2Config, GPT2LMHeadModel, TrainingArguments

ROWS, GLOBAL_BATCH, WORDS, LENGTH = 121, 16, 40, 6


def advance_clock(model, slow):
    def wait(_, given, named):
        CLOCK.now += slow[RANK] * len(named["input_ids"]) if slow else 0.0

    model.register_forward_pre_hook(wait, with_kwargs=True)


def train(options):
    texts = torch.randint(WORDS, (ROWS, LENGTH), generator=torch.Generator().manual_seed(1))
    torch.manual_seed(0)
    size = {"n_positions": LENGTH, "n_embd": 16, "n_layer": 1, "n_head": 2}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **size))
    padded = torch.arange(LENGTH) >= 2 + torch.arange(ROWS)[:, None] % 5  # rows have unequal numbers of tokens
    rows = [{"input_ids": text, "labels": text.masked_fill(no, -100)} for text, no in zip(texts, padded, strict=True)]
    advance_clock(model, options.get("slow", []))
    arguments = TrainingArguments(
        output_dir=options["output"],
        per_device_train_batch_size=options.get("batch", GLOBAL_BATCH) // WORLD,
        num_train_epochs=2,
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


def main(options):
    torch.set_num_threads(1)
    output = Path(options["output"])
    output.mkdir(exist_ok=True, parents=True)
    result = train(options)
    if RANK == 0:
        output.with_suffix(".json").write_text(json.dumps(result))
    if dist.is_initialized():
        dist.barrier()  # otherwise gloo threads may abort a rank after another rank has exited
        dist.destroy_process_group()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
