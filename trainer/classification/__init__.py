"""The task of classifying texts: rows of word ids with a label or a rating; and the reading of trained models."""
