"""The task of learning a language model: streams of text, and the states that are carried along them."""
