# Image for SageMaker's training jobs: AWS's PyTorch image with Shoal's trainer. A topology names it:
# `managed: {image: ACCOUNT.dkr.ecr.REGION.amazonaws.com/shoal:1}`. Without `image`, AWS's own image is used, and each job
# gets the same files when it starts. docs/how-to/use-a-container.md has the commands, docs/reference/container.md the
# input and output of the container.
ARG REGION=us-east-1
FROM 763104351884.dkr.ecr.${REGION}.amazonaws.com/pytorch:2.13.0-cu133-amzn2023-sagemaker

# `make setup` makes this archive: the libraries that the trainer needs in addition to PyTorch, with their list.
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

# SageMaker appends the argument `train`.
ENTRYPOINT ["python", "-P", "-m", "trainer.managed"]
