"""Which extended resources pods can get by Dynamic Resource Allocation (DRA), from nodes that don't
list them.

Source: kube-scheduler's NodeResourcesFit and DynamicResources, v1.36 and v1.37
(DRAExtendedResource).
"""

from typing import Final

from roost_core.objects.fields import JSONObject

# Each DeviceClass can be requested by this and its name.
_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"


def claimable_resources(device_class: JSONObject) -> frozenset[str]:
    """Extended resources for which the scheduler claims devices of this class on nodes that list
    none of them.
    """
    names = {_IMPLICIT + device_class["metadata"]["name"]}
    explicit = (device_class.get("spec") or {}).get("extendedResourceName")
    if explicit:
        names.add(str(explicit))
    return frozenset(names)
