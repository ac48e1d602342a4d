"""Resource types that the emulator adds to those of ministack."""

from shoal_local_aws.seams import cloudformation


def test_an_added_type_has_its_handlers() -> None:
    handlers = {"create": lambda: None}
    cloudformation.add_type("Shoal::Test::Type", handlers, ("Name",))
    try:
        assert cloudformation.handlers_of("Shoal::Test::Type") is handlers
        assert cloudformation._replacing["Shoal::Test::Type"] == ("Name",)
    finally:
        del cloudformation._types["Shoal::Test::Type"], cloudformation._replacing["Shoal::Test::Type"]
