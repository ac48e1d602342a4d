"""`shoal export`: copies a trained model to another folder or to S3, optionally with an ONNX file."""

import click

from shoal.cli.command import command, option
from shoal.cli.input_options import require_s3
from shoal.cli.output import Result
from shoal.cli.output_folder import sole_writer
from shoal.prediction.model import open_model


@command(
    help="""\
Copy a trained model to a new folder, on this machine or on S3, for `shoal
predict` and other programs. A local folder appears only when it is complete;
on S3, config.json is written last.
""",
    epilog="""\
\b
Examples:
  shoal export --model results/model --output s3://bucket/models/reviews
      for prediction on other machines
  shoal export --model results/model --output exported --onnx
      with model.onnx and predict.py, for use without Shoal and PyTorch
""",
)
@option(
    "--model",
    required=True,
    type=click.Path(),
    metavar="DIR_OR_S3",
    help="output of `shoal train`, or a model's folder",
)
@option("--output", required=True, type=click.Path(), metavar="DIR_OR_S3", help="new folder for the model")
@option(
    "--onnx",
    is_flag=True,
    help="also write the classifier as model.onnx, with predict.py, which labels texts with NumPy and ONNX Runtime "
    "alone",
)
@option("--force", is_flag=True, help="replace another model in --output")
def run(*, model: str, output: str, onnx: bool, force: bool) -> Result:
    require_s3(model, output)
    loaded = open_model(model)
    from shoal.prediction.export import export_model

    with sole_writer(output):
        size = export_model(loaded, output, onnx=onnx, force=force)
    return Result({"model": output, "bytes": size}, [{"model": "{model}", "size": "{bytes:size}"}])
