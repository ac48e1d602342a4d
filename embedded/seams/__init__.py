"""What is taken from inside ministack, a module a service: a new version of ministack is the work of this folder."""
