"""Fine-tune a small Transformer with Hugging Face's Trainer over GPUs of unequal speed.

    pip install "shoal-balance[transformers]"
    torchrun --nproc-per-node 2 examples/transformers_trainer.py OUTPUT

Texts and initial weights are random. Replace them with your own texts and `from_pretrained`. Without GPUs the ranks use
the machine's CPU cores. `SLOW_RANK=1` slows rank 1 down.
"""

import os
import random
import sys
from typing import Any

import torch
from shoal_balance.transformers import BalancedTrainer
from transformers import BertConfig, BertForSequenceClassification, TrainingArguments

WORDS = ("the", "lamp", "book", "was", "very", "quite", "good", "fine", "poor", "broken")
LENGTH, TEXTS = 8, 1600


def random_texts(seed: int) -> list[dict[str, Any]]:
    """Return random texts, labelled positive if they have more good words than poor ones."""
    chance, results = random.Random(seed), list[dict[str, Any]]()  # noqa: S311
    while len(results) < TEXTS:
        words = chance.choices(range(len(WORDS)), k=LENGTH)
        good, poor = (sum(word in pair for word in words) for pair in ((6, 7), (8, 9)))
        if good != poor:
            results.append({"input_ids": words, "labels": int(good > poor)})
    return results


def main(output: str) -> None:
    torch.manual_seed(0)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
        )
    )
    if os.environ.get("SLOW_RANK") == os.environ.get("RANK", "0"):
        slow_down(model)
    test = random_texts(seed=1)
    arguments = TrainingArguments(
        output_dir=output,
        per_device_train_batch_size=32,
        num_train_epochs=3,
        learning_rate=2e-3,
        save_strategy="no",
        use_cpu=not torch.cuda.is_available(),
        report_to=[],
        disable_tqdm=True,
    )
    trainer = BalancedTrainer(
        model=model, args=arguments, train_dataset=random_texts(seed=0), eval_dataset=test, compute_metrics=accuracy
    )
    trainer.train()
    results = trainer.evaluate()
    if trainer.is_world_process_zero() and trainer.batches is not None:
        print(f"accuracy {results['eval_accuracy']:.1%}, rows of each rank {trainer.batches.shares}")


def accuracy(results: Any) -> dict[str, float]:
    return {"accuracy": float((results.predictions.argmax(1) == results.label_ids).mean())}


def slow_down(model: BertForSequenceClassification) -> None:
    """Make the model compute each layer of its encoder five more times, to slow down its rank."""

    def again(layer: torch.nn.Module, given: tuple[Any, ...], _result: Any) -> None:
        with torch.no_grad():
            for _ in range(5):
                layer.forward(*given)

    for each in model.bert.encoder.layer:
        each.register_forward_hook(again)


if __name__ == "__main__":
    main(sys.argv[1])
