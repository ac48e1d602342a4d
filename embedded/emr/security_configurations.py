"""Stores the security configurations of EMR by name, separately for each region."""

from collections.abc import Callable, Mapping

from embedded.seams import requests
from embedded.service import Record, RefusedError

_configurations = requests.regional_table()


def _create(request: Record) -> Record:
    name = request["Name"]
    if name in _configurations:
        raise RefusedError("InvalidRequestException", f"Security configuration with name '{name}' already exists.")
    _configurations[name] = {
        "Name": name,
        "SecurityConfiguration": request["SecurityConfiguration"],
        "CreationDateTime": requests.now(),
    }
    return {name: value for name, value in _configurations[name].items() if name != "SecurityConfiguration"}


def _configuration(request: Record) -> Record:
    name = request["Name"]
    if name not in _configurations:
        raise RefusedError("InvalidRequestException", f"Security configuration with name '{name}' does not exist.")
    return _configurations[name]


def _list(request: Record) -> Record:
    del request
    return {
        "SecurityConfigurations": [
            {"Name": entry["Name"], "CreationDateTime": entry["CreationDateTime"]} for entry in _configurations.values()
        ]
    }


def _delete(request: Record) -> Record:
    del _configurations[_configuration(request)["Name"]]
    return {}


OPERATIONS: Mapping[str, Callable[[Record], Record]] = {
    "CreateSecurityConfiguration": _create,
    "DescribeSecurityConfiguration": _configuration,
    "ListSecurityConfigurations": _list,
    "DeleteSecurityConfiguration": _delete,
}
