# An image for training jobs of SageMaker: AWS's with PyTorch, and Shoal's trainer in it. A topology names it:
# `managed: {image: ACCOUNT.dkr.ecr.REGION.amazonaws.com/shoal:1}`; without `image` AWS's own is taken, and gets the same
# files when a job starts. docs/how-to/use-a-container.md has the commands, docs/reference/container.md what it reads and writes.
ARG REGION=us-east-1
FROM 763104351884.dkr.ecr.${REGION}.amazonaws.com/pytorch-training:2.9.0-gpu-py312-cu130-ubuntu22.04-sagemaker

# `make setup` makes this archive: the libraries that the trainer needs beside PyTorch, with their list.
COPY build/wheels/gpu.zip /opt/shoal/wheels.zip
WORKDIR /opt/shoal
RUN python -m zipfile -e wheels.zip wheels \
    && python -m pip install --no-cache-dir --no-index --no-deps --no-compile --find-links wheels --target site \
        -r wheels/requirements.txt \
    && rm -r wheels wheels.zip

COPY common code/common
COPY corpus code/corpus
COPY trainer code/trainer
COPY packages/balance/shoal_balance code/shoal_balance
ENV PYTHONPATH=/opt/shoal/code:/opt/shoal/site

# SageMaker adds the word `train`.
ENTRYPOINT ["python", "-P", "-m", "trainer.managed"]
