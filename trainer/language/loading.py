"""Reads the language model at an address, here or on S3."""

from trainer.language.model_folder import PretrainedModel, read_config, read_language_model
from trainer.output.stored_files import local_folder
from trainer.start_model import FILES, find_start_model


def load_language_model(address: str) -> PretrainedModel:
    """Read the language model in a folder, or in that of its run: a path or s3://... Raises TrainingError if there is
    none, or if this version of Shoal cannot read it, and DataError if S3 cannot be read."""
    folder = find_start_model(address).folder
    with local_folder(folder, FILES, read_config) as path:
        return read_language_model(path, folder)
