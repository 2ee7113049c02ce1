"""Written by `roost chart` from templates/ and chart/: edit those."""

# ruff: noqa: ANN001, ANN201, ARG001, D103, E501, E714, F841, I001, PLR1714, RUF100, SIM102, SIM114, UP018, UP034
# mypy: ignore-errors
# fmt: off

from generator.render.functions import (
    default, each, indent, items, plus, read_key, sha256_of, to_int, to_json, to_pretty_json,
)


def macro_metadata(given, v_name, v_component, v_annotations):
    out = []
    out.append('name: ')
    out.append(str(to_json(v_name)))
    out.append('\nnamespace: ')
    out.append(str(to_json(read_key(given['release'], 'namespace'))))
    out.append('\n')
    v_all_annotations = given['merge'](read_key(given['values'], 'commonAnnotations'), v_annotations)
    if v_all_annotations:
        out.append('annotations: ')
        out.append(str(to_json(v_all_annotations)))
        out.append('\n')
    out.append('labels: ')
    out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': v_component, 'app.kubernetes.io/managed-by': 'roost', 'app.kubernetes.io/part-of': 'roost'}))))
    return ''.join(out)

def macro_cluster_metadata(given, v_name, v_component, v_annotations):
    out = []
    out.append('name: ')
    out.append(str(to_json(v_name)))
    out.append('\n')
    v_all_annotations = given['merge'](read_key(given['values'], 'commonAnnotations'), v_annotations)
    if v_all_annotations:
        out.append('annotations: ')
        out.append(str(to_json(v_all_annotations)))
        out.append('\n')
    out.append('labels: ')
    out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': v_component, 'app.kubernetes.io/managed-by': 'roost', 'app.kubernetes.io/part-of': 'roost'}))))
    return ''.join(out)

def macro_selector(given, v_component):
    out = []
    out.append(str(to_json({'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': v_component})))
    return ''.join(out)

def macro_pod_labels(given, v_component, v_labels):
    out = []
    out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), v_labels, {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': v_component, 'app.kubernetes.io/part-of': 'roost'}))))
    return ''.join(out)

def macro_placeholder_selector(given, v_set_name):
    out = []
    out.append(str(to_json({'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'roost.hub.jupyter.org/placeholder-set': v_set_name})))
    return ''.join(out)

def macro_pull_secrets(given):
    out = []
    out.append('[')
    for v_secret in each(read_key(given['values'], 'imagePullSecrets')):
        out.append('{"name": ')
        out.append(str(to_json(v_secret)))
        out.append('},')
    out.append(']')
    return ''.join(out)

def macro_puller_pull_secrets(given):
    out = []
    out.append('[')
    for v_secret in each(given['unique'](given['concat'](read_key(given['values'], 'imagePullSecrets'), read_key(read_key(read_key(given['values'], 'singleuser'), 'image'), 'pullSecrets')))):
        out.append('{"name": ')
        out.append(str(to_json(v_secret)))
        out.append('},')
    out.append(']')
    return ''.join(out)

def macro_pod_security(given):
    out = []
    out.append('{"runAsNonRoot": true, "runAsUser": 65534, "runAsGroup": 65534, "fsGroup": 65534, "seccompProfile": {"type": "RuntimeDefault"}}')
    return ''.join(out)

def macro_container_security(given):
    out = []
    out.append('{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}}')
    return ''.join(out)

def macro_spread(given, v_component):
    out = []
    out.append('[{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": ')
    out.append(str(macro_selector(given, v_component)))
    out.append('}}, {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": ')
    out.append(str(macro_selector(given, v_component)))
    out.append('}}]')
    return ''.join(out)

def macro_pod_terms(given, v_pairs):
    out = []
    out.append('[')
    for v_other, v_weight in each(items(v_pairs)):
        if (read_key(read_key(given['values'], 'podClasses'), v_other) is None):
            out.append(str(given['fail']((str("podClasses has no class '") + str(v_other) + str("', which a join or avoid names")))))
        out.append('{"weight": ')
        out.append(str(to_json(v_weight)))
        out.append(', "podAffinityTerm": {"topologyKey": ')
        out.append(str(to_json('kubernetes.io/hostname')))
        out.append(', ')
        if (not (read_key(read_key(given['values'], 'sharedPools'), 'namespaceSelector') is None)):
            out.append('"namespaces": [')
            out.append(str(to_json(read_key(given['release'], 'namespace'))))
            out.append('], "namespaceSelector": ')
            out.append(str(to_json(read_key(read_key(given['values'], 'sharedPools'), 'namespaceSelector'))))
            out.append(', ')
        elif (not (read_key(read_key(read_key(read_key(given['values'], 'podClasses'), v_other), 'match'), 'namespaceSelector') is None)):
            out.append('"namespaceSelector": ')
            out.append(str(to_json(read_key(read_key(read_key(read_key(given['values'], 'podClasses'), v_other), 'match'), 'namespaceSelector'))))
            out.append(', ')
        out.append('"labelSelector": {"matchLabels": ')
        out.append(str(to_json(read_key(read_key(read_key(read_key(given['values'], 'podClasses'), v_other), 'match'), 'labels'))))
        out.append(' } } }, ')
    out.append(']')
    return ''.join(out)

def macro_some_class_elsewhere(given):
    out = []
    out.append('no')
    for v_name, v_class in each(items(read_key(given['values'], 'podClasses'))):
        if ((not (read_key(read_key(v_class, 'match'), 'namespaceSelector') is None)) or ((not (read_key(v_class, 'warm') is None)) and (not (read_key(read_key(given['values'], 'sharedPools'), 'namespaceSelector') is None)))):
            out.append(', but ')
            out.append(str(to_json(v_name)))
    out.append(';')
    return ''.join(out)

def macro_cel_schedulers(given):
    out = []
    out.append('["default-scheduler", ')
    for v_scheduler in each(read_key(given['values'], 'replaceSchedulers')):
        out.append(str(to_json(v_scheduler)))
        out.append(', ')
    out.append(']')
    return ''.join(out)

def macro_cel_node_term(given, v_term):
    out = []
    out.append('{ ')
    if read_key(v_term, 'matchExpressions'):
        out.append('"matchExpressions": dyn([')
        for v_one in each(read_key(v_term, 'matchExpressions')):
            out.append('{"key": dyn(')
            out.append(str(to_json(read_key(v_one, 'key'))))
            out.append('), "operator": dyn(')
            out.append(str(to_json(read_key(v_one, 'operator'))))
            out.append(')')
            if read_key(v_one, 'values'):
                out.append(', "values": dyn(')
                out.append(str(to_json(read_key(v_one, 'values'))))
                out.append(')')
            out.append('}, ')
        out.append(']), ')
    if read_key(v_term, 'matchFields'):
        out.append('"matchFields": dyn([')
        for v_one in each(read_key(v_term, 'matchFields')):
            out.append('{"key": dyn(')
            out.append(str(to_json(read_key(v_one, 'key'))))
            out.append('), "operator": dyn(')
            out.append(str(to_json(read_key(v_one, 'operator'))))
            out.append('), "values": dyn(')
            out.append(str(to_json(read_key(v_one, 'values'))))
            out.append(')}, ')
        out.append(']), ')
    out.append('}')
    return ''.join(out)

def macro_cel_same_expression(given, v_expression):
    out = []
    out.append('(e.key == ')
    out.append(str(to_json(read_key(v_expression, 'key'))))
    out.append(' && e.operator == ')
    out.append(str(to_json(read_key(v_expression, 'operator'))))
    out.append(' && e.?values.orValue([]).all(v, v in ')
    out.append(str(to_json(default(read_key(v_expression, 'values'), []))))
    out.append(') && ')
    out.append(str(to_json(default(read_key(v_expression, 'values'), []))))
    out.append('.all(v, v in e.?values.orValue([])))')
    return ''.join(out)

def macro_cel_same_node_term(given, v_wanted):
    out = []
    out.append('term.preference.?matchExpressions.orValue([]).all(e, false')
    for v_one in each(read_key(v_wanted, 'matchExpressions')):
        out.append(' || ')
        out.append(str(macro_cel_same_expression(given, v_one)))
    out.append(') && term.preference.?matchFields.orValue([]).all(e, false')
    for v_one in each(read_key(v_wanted, 'matchFields')):
        out.append(' || ')
        out.append(str(macro_cel_same_expression(given, v_one)))
    out.append(')')
    for v_one in each(read_key(v_wanted, 'matchExpressions')):
        out.append(' && term.preference.?matchExpressions.orValue([]).exists(e, ')
        out.append(str(macro_cel_same_expression(given, v_one)))
        out.append(')')
    for v_one in each(read_key(v_wanted, 'matchFields')):
        out.append(' && term.preference.?matchFields.orValue([]).exists(e, ')
        out.append(str(macro_cel_same_expression(given, v_one)))
        out.append(')')
    out.append(' && true')
    return ''.join(out)

def macro_cel_meets(given, v_expression):
    out = []
    out.append(str(to_json({'In': True, 'NotIn': False, 'Exists': True, 'DoesNotExist': False})))
    out.append('[')
    out.append(str(to_json(read_key(v_expression, 'operator'))))
    out.append('] == namespaceObject.metadata.?labels[?')
    out.append(str(to_json(read_key(v_expression, 'key'))))
    out.append('].optMap(value, ')
    if read_key(v_expression, 'values'):
        out.append('value in ')
        out.append(str(to_json(read_key(v_expression, 'values'))))
    else:
        out.append('true')
    out.append(').orValue(false)')
    return ''.join(out)

def macro_cel_belongs(given, v_match):
    out = []
    out.append(str(to_json(read_key(v_match, 'labels'))))
    out.append('.all(key, object.metadata.?labels[?key] == optional.of(')
    out.append(str(to_json(read_key(v_match, 'labels'))))
    out.append('[key]))')
    if (read_key(v_match, 'namespaceSelector') is None):
        out.append(' && request.namespace == ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
    else:
        out.append(' && request.namespace != "kube-system" && ')
        out.append(str(to_json(default(read_key(read_key(v_match, 'namespaceSelector'), 'matchLabels'), {}))))
        out.append('.all(key, namespaceObject.metadata.?labels[?key] == optional.of(')
        out.append(str(to_json(default(read_key(read_key(v_match, 'namespaceSelector'), 'matchLabels'), {}))))
        out.append('[key]))')
        for v_expression in each(read_key(read_key(v_match, 'namespaceSelector'), 'matchExpressions')):
            out.append(' && ')
            out.append(str(macro_cel_meets(given, v_expression)))
        out.append(' && true')
    out.append(' && true')
    return ''.join(out)

def macro_cel_selector(given, v_selector):
    out = []
    out.append('{ ')
    if read_key(v_selector, 'matchLabels'):
        out.append('"matchLabels": dyn(')
        out.append(str(to_json(read_key(v_selector, 'matchLabels'))))
        out.append('), ')
    if read_key(v_selector, 'matchExpressions'):
        out.append('"matchExpressions": dyn(')
        out.append(str(macro_cel_node_term(given, v_selector)))
        out.append('.matchExpressions), ')
    out.append('}')
    return ''.join(out)

def macro_cel_pod_term(given, v_own, v_other):
    out = []
    out.append('{"topologyKey": dyn(')
    out.append(str(to_json('kubernetes.io/hostname')))
    out.append('), "labelSelector": dyn({"matchLabels": ')
    out.append(str(to_json(read_key(v_other, 'labels'))))
    out.append('}), ')
    if (not (read_key(read_key(given['values'], 'sharedPools'), 'namespaceSelector') is None)):
        out.append('"namespaces": dyn([')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append(']), "namespaceSelector": dyn(')
        out.append(str(macro_cel_selector(given, read_key(read_key(given['values'], 'sharedPools'), 'namespaceSelector'))))
        out.append('), ')
    elif (not (read_key(v_other, 'namespaceSelector') is None)):
        out.append('"namespaceSelector": dyn(')
        out.append(str(macro_cel_selector(given, read_key(v_other, 'namespaceSelector'))))
        out.append('), ')
    elif (not (read_key(v_own, 'namespaceSelector') is None)):
        out.append('"namespaces": dyn([')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append(']), ')
    out.append('}')
    return ''.join(out)

def macro_cel_way_to_node_affinity(given):
    out = []
    out.append('(has(object.spec.affinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity", value: {}}]) + (has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity/nodeAffinity", value: {}}])')
    return ''.join(out)

def macro_cel_way_to_pod_affinity(given):
    out = []
    out.append('(has(object.spec.affinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity", value: {}}]) + (has(object.spec.affinity) && has(object.spec.affinity.podAffinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity/podAffinity", value: {}}]) + (has(object.spec.affinity) && has(object.spec.affinity.podAffinity) && has(object.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution) ? [] : [JSONPatch{op: "add", path: "/spec/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution", value: []}])')
    return ''.join(out)

def macro_cel_way_to_pod_anti_affinity(given):
    out = []
    out.append('(has(object.spec.affinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity", value: {}}]) + (has(object.spec.affinity) && has(object.spec.affinity.podAntiAffinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity/podAntiAffinity", value: {}}]) + (has(object.spec.affinity) && has(object.spec.affinity.podAntiAffinity) && has(object.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution) ? [] : [JSONPatch{op: "add", path: "/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution", value: []}])')
    return ''.join(out)

def macro_scheduler_config(given):
    out = []
    out.append('apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npercentageOfNodesToScore: ')
    out.append(str(to_json(read_key(read_key(given['values'], 'scheduler'), 'percentageOfNodesToScore'))))
    out.append('\n')
    if (not read_key(read_key(given['values'], 'scheduler'), 'profiles')):
        out.append(str(given['fail']("scheduler.profiles is empty: kube-scheduler would then take the place of the cluster's own")))
        out.append('\n')
    out.append('profiles:\n')
    for v_name, v_profile in each(items(read_key(read_key(given['values'], 'scheduler'), 'profiles'))):
        out.append('  - schedulerName: ')
        out.append(str(to_json(given['scheduler_name'](v_name))))
        out.append('\n')
        v_strategy = read_key(read_key(read_key(given['values'], 'scheduler'), 'strategies'), default(read_key(v_profile, 'strategy'), ''))
        if ((v_strategy is None) and (not (read_key(v_profile, 'plugins') and read_key(v_profile, 'pluginConfig')))):
            out.append(str(given['fail']((str('scheduler.profiles.') + str(v_name) + str('.strategy is no key of scheduler.strategies')))))
            out.append('\n')
        if read_key(v_profile, 'plugins'):
            out.append('    plugins: ')
            out.append(str(to_json(read_key(v_profile, 'plugins'))))
            out.append('\n')
        else:
            out.append('    plugins:\n      score:\n        disabled:\n')
            for v_plugin in each(read_key(v_strategy, 'disabled')):
                out.append('          - name: ')
                out.append(str(to_json(v_plugin)))
                out.append('\n')
            out.append('        enabled:\n')
            for v_plugin, v_weight in each(items(read_key(v_strategy, 'weights'))):
                out.append('          - name: ')
                out.append(str(to_json(v_plugin)))
                out.append('\n            weight: ')
                out.append(str(to_json(v_weight)))
                out.append('\n')
        if read_key(v_profile, 'pluginConfig'):
            out.append('    pluginConfig: ')
            out.append(str(to_json(read_key(v_profile, 'pluginConfig'))))
            out.append('\n')
        else:
            out.append('    pluginConfig:\n      # Default spreading would work against packing, for placeholders and for pods that a Service selects.\n      - name: PodTopologySpread\n        args:\n          defaultingType: List\n          defaultConstraints: []\n')
            if read_key(v_strategy, 'fit'):
                out.append('      - name: NodeResourcesFit\n        args:\n          scoringStrategy: ')
                out.append(str(to_json(read_key(v_strategy, 'fit'))))
                out.append('\n')
    out.append('leaderElection:\n  leaderElect: true\n  resourceLock: leases\n  resourceName: ')
    out.append(str(to_json(given['object_name']('scheduler'))))
    out.append('\n  resourceNamespace: ')
    out.append(str(to_json(read_key(given['release'], 'namespace'))))
    out.append('\n  leaseDuration: ')
    out.append(str(to_json(read_key(read_key(read_key(given['values'], 'scheduler'), 'leaderElection'), 'leaseDuration'))))
    out.append('\n  renewDeadline: ')
    out.append(str(to_json(read_key(read_key(read_key(given['values'], 'scheduler'), 'leaderElection'), 'renewDeadline'))))
    out.append('\n  retryPeriod: ')
    out.append(str(to_json(read_key(read_key(read_key(given['values'], 'scheduler'), 'leaderElection'), 'retryPeriod'))))
    out.append('\nclientConnection:\n  # Empty: the account of the pod.\n  kubeconfig: ""\n  qps: ')
    out.append(str(to_json(read_key(read_key(read_key(given['values'], 'scheduler'), 'clientConnection'), 'qps'))))
    out.append('\n  burst: ')
    out.append(str(to_json(read_key(read_key(read_key(given['values'], 'scheduler'), 'clientConnection'), 'burst'))))
    out.append("\n# Profiles of a running scheduler are nobody's business on the pod network.\nenableProfiling: false")
    return ''.join(out)

def macro_controllers_settings(given):
    out = []
    out.append(str(to_pretty_json({'version': 1, 'release': read_key(given['release'], 'name'), 'namespace': read_key(given['release'], 'namespace'), 'writesPerMinute': read_key(read_key(given['values'], 'controllers'), 'writesPerMinute'), 'podClasses': read_key(given['values'], 'podClasses'), 'gate': {'mode': read_key(read_key(given['values'], 'imageGate'), 'mode'), 'startupTaintDeadlineSeconds': read_key(read_key(given['values'], 'imageGate'), 'startupTaintDeadlineSeconds'), 'pullDeadlineSeconds': read_key(read_key(given['values'], 'imageGate'), 'pullDeadlineSeconds'), 'openAfterSeconds': read_key(read_key(given['values'], 'imageGate'), 'openAfterSeconds'), 'hasPuller': read_key(read_key(given['values'], 'prePuller'), 'enabled'), 'nodeCondition': read_key(read_key(given['values'], 'imageGate'), 'nodeCondition'), 'pullerPods': read_key(read_key(given['values'], 'imageGate'), 'pullerPods'), 'pullers': given['pullers'](read_key(given['values'], 'singleuser'), read_key(given['values'], 'prePuller'))}, 'placeholderMover': read_key(given['values'], 'placeholderMover'), 'placeholders': given['placeholder_sets'](read_key(given['values'], 'placeholders'), read_key(read_key(given['values'], 'placeholder'), 'defaults')), 'placeholderBackend': read_key(read_key(given['values'], 'placeholder'), 'backend'), 'popularImages': read_key(given['values'], 'popularImages'), 'puller': {'method': given['puller_method'](), 'image': given['own_image'](), 'pauseImage': (str(read_key(read_key(read_key(given['values'], 'placeholder'), 'image'), 'name')) + str(':') + str(read_key(read_key(read_key(given['values'], 'placeholder'), 'image'), 'tag'))), 'pullSecrets': given['unique'](given['concat'](read_key(given['values'], 'imagePullSecrets'), read_key(read_key(read_key(given['values'], 'singleuser'), 'image'), 'pullSecrets'))), 'tolerations': given['concat'](read_key(read_key(given['values'], 'prePuller'), 'tolerations'), [{'key': given['startup_taint'](), 'operator': 'Exists'}]), 'priorityClassName': ((read_key(read_key(given['values'], 'priorityClasses'), 'enabled') and given['cluster_object_name']('puller')) or ''), 'serviceAccountName': given['object_name']('puller')}})))
    return ''.join(out)

def macro_recorder_settings(given):
    out = []
    out.append(str(to_pretty_json({'version': 1, 'release': read_key(given['release'], 'name'), 'namespace': read_key(given['release'], 'namespace'), 'podClasses': read_key(given['values'], 'podClasses'), 'gate': {'mode': read_key(read_key(given['values'], 'imageGate'), 'mode'), 'pullers': given['pullers'](read_key(given['values'], 'singleuser'), read_key(given['values'], 'prePuller'))}, 'retentionDays': read_key(read_key(given['values'], 'recorder'), 'retentionDays')})))
    return ''.join(out)

def macro_only_the_controllers(given):
    out = []
    out.append('[{"name": "by-the-controllers", "expression": ')
    out.append(str(to_json((str("request.userInfo.username == 'system:serviceaccount:") + str(read_key(given['release'], 'namespace')) + str(':') + str(given['object_name']('controllers')) + str("'")))))
    out.append('}]')
    return ''.join(out)

def macro_puller_resources(given):
    out = []
    out.append('{ ')
    if read_key(read_key(read_key(given['values'], 'prePuller'), 'resources'), 'requests'):
        out.append('"requests": ')
        out.append(str(to_json(read_key(read_key(read_key(given['values'], 'prePuller'), 'resources'), 'requests'))))
        out.append(', ')
    if read_key(read_key(read_key(given['values'], 'prePuller'), 'resources'), 'limits'):
        out.append('"limits": ')
        out.append(str(to_json(read_key(read_key(read_key(given['values'], 'prePuller'), 'resources'), 'limits'))))
    out.append('}')
    return ''.join(out)

def macro_placeholder_pod(given, v_set, v_class, v_draws):
    out = []
    out.append('metadata:\n')
    if read_key(v_set, 'annotations'):
        out.append('  annotations: ')
        out.append(str(to_json(read_key(v_set, 'annotations'))))
        out.append('\n')
    out.append('  labels: ')
    out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), read_key(v_set, 'labels'), read_key(read_key(v_class, 'match'), 'labels'), {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': 'placeholder', 'app.kubernetes.io/part-of': 'roost', 'roost.hub.jupyter.org/placeholder-set': read_key(v_set, 'name')}))))
    out.append('\nspec:\n')
    if ((read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy') and read_key(v_class, 'profile')):
        out.append('  schedulerName: ')
        out.append(str(to_json(given['scheduler_name'](read_key(v_class, 'profile')))))
        out.append('\n')
    if read_key(read_key(given['values'], 'priorityClasses'), 'enabled'):
        out.append('  priorityClassName: ')
        out.append(str(to_json(given['cluster_object_name']('placeholder'))))
        out.append('\n')
    out.append('  # A seat gives way at once.\n  terminationGracePeriodSeconds: 0\n  automountServiceAccountToken: false\n  enableServiceLinks: false\n')
    if read_key(given['values'], 'imagePullSecrets'):
        out.append('  imagePullSecrets: ')
        out.append(str(macro_pull_secrets(given)))
        out.append('\n')
    if read_key(v_set, 'nodeSelector'):
        out.append('  nodeSelector: ')
        out.append(str(to_json(read_key(v_set, 'nodeSelector'))))
        out.append('\n')
    if read_key(v_set, 'tolerations'):
        out.append('  tolerations: ')
        out.append(str(to_json(read_key(v_set, 'tolerations'))))
        out.append('\n')
    if ((((read_key(v_set, 'requiredNodeTerms') or read_key(v_class, 'preferredNodeTerms')) or v_draws) or read_key(v_class, 'join')) or read_key(v_class, 'avoid')):
        out.append('  affinity:\n')
        if ((read_key(v_set, 'requiredNodeTerms') or read_key(v_class, 'preferredNodeTerms')) or v_draws):
            out.append('    nodeAffinity:\n')
            if read_key(v_set, 'requiredNodeTerms'):
                out.append('      requiredDuringSchedulingIgnoredDuringExecution:\n        nodeSelectorTerms: ')
                out.append(str(to_json(read_key(v_set, 'requiredNodeTerms'))))
                out.append('\n')
            if (read_key(v_class, 'preferredNodeTerms') or v_draws):
                out.append('      preferredDuringSchedulingIgnoredDuringExecution:\n')
                for v_term in each(read_key(v_class, 'preferredNodeTerms')):
                    out.append('        - ')
                    out.append(str(to_json(v_term)))
                    out.append('\n')
                if v_draws:
                    out.append('        - weight: 100\n          preference:\n            matchExpressions:\n              - key: ')
                    out.append(str(to_json(given['attract_label'](read_key(v_set, 'name')))))
                    out.append('\n                operator: Exists\n')
        if read_key(v_class, 'join'):
            out.append('    podAffinity:\n      preferredDuringSchedulingIgnoredDuringExecution: ')
            out.append(str(macro_pod_terms(given, read_key(v_class, 'join'))))
            out.append('\n')
        if read_key(v_class, 'avoid'):
            out.append('    podAntiAffinity:\n      preferredDuringSchedulingIgnoredDuringExecution: ')
            out.append(str(macro_pod_terms(given, read_key(v_class, 'avoid'))))
            out.append('\n')
    out.append('  securityContext: ')
    out.append(str(macro_pod_security(given)))
    out.append('\n  containers:\n    - name: pause\n      image: ')
    out.append(str(to_json((str(read_key(read_key(read_key(given['values'], 'placeholder'), 'image'), 'name')) + str(':') + str(read_key(read_key(read_key(given['values'], 'placeholder'), 'image'), 'tag'))))))
    out.append('\n      imagePullPolicy: ')
    out.append(str(to_json(read_key(read_key(read_key(given['values'], 'placeholder'), 'image'), 'pullPolicy'))))
    out.append('\n')
    if (read_key(v_set, 'resources') and (read_key(read_key(v_set, 'resources'), 'requests') or read_key(read_key(v_set, 'resources'), 'limits'))):
        out.append('      resources:\n')
        if read_key(read_key(v_set, 'resources'), 'requests'):
            out.append('        requests: ')
            out.append(str(to_json(read_key(read_key(v_set, 'resources'), 'requests'))))
            out.append('\n')
        if read_key(read_key(v_set, 'resources'), 'limits'):
            out.append('        limits: ')
            out.append(str(to_json(read_key(read_key(v_set, 'resources'), 'limits'))))
            out.append('\n')
    out.append('      securityContext: ')
    out.append(str(macro_container_security(given)))
    return ''.join(out)



def render_controllers_admission_policies(given):
    out = []
    if ((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')) and read_key(given['values'], 'clusterResources')):
        out.append('---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-nodes'), 'controllers', {}), 2)))
        out.append('\nspec:\n  failurePolicy: Fail\n  matchConstraints:\n    matchPolicy: Equivalent\n    resourceRules:\n      - apiGroups: [""]\n        apiVersions: ["*"]\n        operations: [CREATE, UPDATE, DELETE]\n        resources: [nodes, nodes/status]\n        scope: Cluster\n  matchConditions: ')
        out.append(str(macro_only_the_controllers(given)))
        out.append('\n  variables:\n    - name: labels\n      expression: object.metadata.?labels.orValue({})\n    - name: oldLabels\n      expression: oldObject.metadata.?labels.orValue({})\n    - name: taints\n      expression: object.?spec.?taints.orValue([])\n    - name: oldTaints\n      expression: oldObject.?spec.?taints.orValue([])\n    - name: conditions\n      expression: object.?status.?conditions.orValue([])\n    - name: oldConditions\n      expression: oldObject.?status.?conditions.orValue([])\n    - name: metadata\n      expression: dyn(object.metadata)\n    - name: oldMetadata\n      expression: dyn(oldObject.metadata)\n    - name: spec\n      expression: dyn(object.?spec.orValue({}))\n    - name: oldSpec\n      expression: dyn(oldObject.?spec.orValue({}))\n    - name: status\n      expression: dyn(object.?status.orValue({}))\n    - name: oldStatus\n      expression: dyn(oldObject.?status.orValue({}))\n  validations:\n    - expression: request.operation == "UPDATE"\n      message: Roost\'s controllers neither make nor delete nodes\n    - expression: >-\n        request.operation != "UPDATE" ||\n        variables.labels.all(key, key.startsWith(')
        out.append(str(to_json(given['pulled_prefix']())))
        out.append(') || key.startsWith(')
        out.append(str(to_json(given['attract_prefix']())))
        out.append(')\n        || (key in variables.oldLabels && variables.labels[key] == variables.oldLabels[key]))\n        && variables.oldLabels.all(key, key in variables.labels\n        || key.startsWith(')
        out.append(str(to_json(given['pulled_prefix']())))
        out.append(') || key.startsWith(')
        out.append(str(to_json(given['attract_prefix']())))
        out.append('))\n      message: Roost\'s controllers write labels of their own release only\n    - expression: >-\n        request.operation != "UPDATE" ||\n        variables.labels.all(key, !key.startsWith(')
        out.append(str(to_json(given['pulled_prefix']())))
        out.append(') || variables.labels[key] in ["true", "pulling", "open"]\n        || (key in variables.oldLabels && variables.labels[key] == variables.oldLabels[key]))\n      message: Roost\'s controllers say of an image on a node "true", "pulling" or "open" only\n    - expression: >-\n        request.operation != "UPDATE" ||\n        variables.metadata.all(key, key in ["labels", "managedFields", "resourceVersion", "generation"]\n        || (key in variables.oldMetadata && variables.metadata[key] == variables.oldMetadata[key]))\n        && variables.oldMetadata.all(key, key in ["labels", "managedFields", "resourceVersion", "generation"] || key in variables.metadata)\n      message: of a node\'s metadata, Roost\'s controllers write labels only\n    - expression: >-\n        request.operation != "UPDATE" ||\n        variables.taints.filter(taint, taint.key != ')
        out.append(str(to_json(given['startup_taint']())))
        out.append(')\n        == variables.oldTaints.filter(taint, taint.key != ')
        out.append(str(to_json(given['startup_taint']())))
        out.append(')\n      message: Roost\'s controllers write the startup taint of their own release only\n    - expression: >-\n        request.operation != "UPDATE" ||\n        variables.taints.all(taint, taint.key != ')
        out.append(str(to_json(given['startup_taint']())))
        out.append(' || taint in variables.oldTaints)\n      message: Roost\'s controllers take the startup taint off, and never put it on\n    - expression: >-\n        request.operation != "UPDATE" ||\n        variables.spec.all(key, key == "taints" || (key in variables.oldSpec && variables.spec[key] == variables.oldSpec[key]))\n        && variables.oldSpec.all(key, key == "taints" || key in variables.spec)\n      message: of a node\'s spec, Roost\'s controllers write the startup taint only\n    - expression: >-\n        request.operation != "UPDATE" ||\n        variables.status.all(key, key == "conditions" || (key in variables.oldStatus && variables.status[key] == variables.oldStatus[key]))\n        && variables.oldStatus.all(key, key == "conditions" || key in variables.status)\n      message: of a node\'s status, Roost\'s controllers write one condition only\n    - expression: >-\n        request.operation != "UPDATE" ||\n        variables.conditions.filter(condition, condition.type != ')
        out.append(str(to_json(given['images_condition']())))
        out.append(')\n        == variables.oldConditions.filter(condition, condition.type != ')
        out.append(str(to_json(given['images_condition']())))
        out.append(")\n      message: Roost's controllers write the condition of their own release only\n")
        if (not read_key(read_key(given['values'], 'imageGate'), 'nodeCondition')):
            out.append('    # One that was written before imageGate.nodeCondition was switched off must still go.\n    - expression: >-\n        request.operation != "UPDATE" ||\n        variables.conditions.all(condition, condition.type != ')
            out.append(str(to_json(given['images_condition']())))
            out.append(" || condition in variables.oldConditions)\n      message: while imageGate.nodeCondition is off, Roost's controllers take their condition away, and never write it\n")
        out.append('---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-nodes'), 'controllers', {}), 2)))
        out.append('\nspec:\n  policyName: ')
        out.append(str(to_json(given['cluster_object_name']('controllers-nodes'))))
        out.append('\n  validationActions: [Deny]\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-evictions'), 'controllers', {}), 2)))
        out.append('\nspec:\n  failurePolicy: Fail\n  matchConstraints:\n    matchPolicy: Equivalent\n    resourceRules:\n      - apiGroups: [""]\n        apiVersions: ["*"]\n        operations: ["*"]\n        resources: [pods/eviction]\n        scope: Namespaced\n  matchConditions: ')
        out.append(str(macro_only_the_controllers(given)))
        out.append("\n  validations:\n    # An eviction names its pod and shows nothing else of it; a StatefulSet's pods are named by its name and a number.\n    - expression: >-\n        request.namespace == ")
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append(' && dyn([\n')
        if (read_key(read_key(given['values'], 'placeholder'), 'backend') == 'statefulset'):
            for v_set in each(read_key(given['values'], 'placeholders')):
                out.append('        ')
                out.append(str(to_json((str(given['object_name']((str('placeholder-') + str(read_key(v_set, 'name'))), 52)) + str('-')))))
                out.append(',\n')
        out.append('        ]).exists(set, request.name.startsWith(string(set)) && request.name.substring(string(set).size()).matches("^[0-9]+$"))\n      message: Roost\'s controllers evict placeholders of their own release only\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-evictions'), 'controllers', {}), 2)))
        out.append('\nspec:\n  policyName: ')
        out.append(str(to_json(given['cluster_object_name']('controllers-evictions'))))
        out.append('\n  validationActions: [Deny]\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-pods'), 'controllers', {}), 2)))
        out.append('\nspec:\n  failurePolicy: Fail\n  matchConstraints:\n    matchPolicy: Equivalent\n    resourceRules:\n      - apiGroups: [""]\n        apiVersions: ["*"]\n        operations: [CREATE, UPDATE, DELETE]\n        resources: [pods]\n        scope: Namespaced\n  matchConditions: ')
        out.append(str(macro_only_the_controllers(given)))
        out.append('\n  variables:\n    - name: labels\n      expression: \'(request.operation == "DELETE" ? oldObject : object).metadata.?labels.orValue({})\'\n    - name: spec\n      expression: \'(request.operation == "DELETE" ? oldObject : object).spec\'\n    - name: containers\n      expression: variables.spec.containers + variables.spec.?initContainers.orValue([]) + variables.spec.?ephemeralContainers.orValue([])\n  validations:\n    - expression: request.operation != "UPDATE" && request.namespace == ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n      message: Roost\'s controllers make and delete pods in their own namespace only, and change none\n    - expression: >-\n        variables.labels[?"app.kubernetes.io/part-of"].orValue("") == "roost"\n        && variables.labels[?"app.kubernetes.io/instance"].orValue("") == ')
        out.append(str(to_json(read_key(given['release'], 'name'))))
        out.append('\n        && variables.labels[?"app.kubernetes.io/component"].orValue("") == ')
        out.append(str(to_json('popular-puller')))
        out.append('\n      message: Roost\'s controllers make and delete pods only that carry the labels of pods that pull popular images\n    # What is deleted was made under values that may have changed since.\n    - expression: >-\n        request.operation == "DELETE" || variables.labels.all(key,\n        (key == "app.kubernetes.io/name" && variables.labels[key] == "roost")\n        || key in ["app.kubernetes.io/part-of", "app.kubernetes.io/instance", "app.kubernetes.io/component"]\n        || (key in dyn(')
        out.append(str(to_json(read_key(given['values'], 'commonLabels'))))
        out.append(') && dyn(')
        out.append(str(to_json(read_key(given['values'], 'commonLabels'))))
        out.append(')[key] == variables.labels[key]))\n      message: pods that pull images have no other labels than their own and commonLabels, or Services and NetworkPolicies would take them for somebody else\'s\n    - expression: >-\n        request.operation == "DELETE" || object.metadata.?ownerReferences.orValue([]).all(owner,\n        owner.apiVersion == "v1" && owner.kind == "ServiceAccount" && owner.name == ')
        out.append(str(to_json(given['object_name']('controllers'))))
        out.append(')\n      message: pods that pull images belong to the controllers\' ServiceAccount or to nobody\n    - expression: >-\n        request.operation == "DELETE" || (variables.spec.?serviceAccountName.orValue("") == ')
        out.append(str(to_json(given['object_name']('puller'))))
        out.append('\n        && !variables.spec.?automountServiceAccountToken.orValue(true))\n      message: pods that pull images have the puller\'s ServiceAccount, and no token\n    - expression: >-\n        request.operation == "DELETE" || variables.spec.?nodeName.orValue("") == ""\n      message: pods that pull images go through the scheduler\n')
        if (given['puller_method']() == 'imageVolume'):
            out.append('    - expression: >-\n        request.operation == "DELETE" || (variables.spec.?volumes.orValue([]).all(volume, has(volume.image))\n        && variables.containers.all(one, one.image == ')
            out.append(str(to_json((str(read_key(read_key(read_key(given['values'], 'placeholder'), 'image'), 'name')) + str(':') + str(read_key(read_key(read_key(given['values'], 'placeholder'), 'image'), 'tag'))))))
            out.append('\n        && one.?command.orValue([]).size() == 0 && one.?args.orValue([]).size() == 0))\n      message: pods that pull images mount them and run nothing but the pause image\n')
        else:
            out.append('    - expression: >-\n        request.operation == "DELETE" || (variables.spec.?volumes.orValue([]).size() == 1\n        && variables.spec.volumes.all(volume, has(volume.emptyDir))\n        && variables.containers.all(one, one.?args.orValue([]).size() == 0\n        && one.?volumeMounts.orValue([]).size() == 1 && one.volumeMounts.all(mount, mount.mountPath == "/roost-pause"))\n        && variables.spec.containers.all(one, one.?command.orValue([]) == ["/roost-pause/pause"])\n        && variables.spec.?initContainers.orValue([]).size() == 1\n        && variables.spec.initContainers.all(one, one.?command.orValue([]) == ["/usr/local/lib/roost/pause", "install", "/roost-pause/pause"]\n        && one.image == ')
            out.append(str(to_json(given['own_image']())))
            out.append("))\n      message: pods that pull images run nothing but Roost's own pause in them\n")
        out.append('    - expression: >-\n        request.operation == "DELETE" || variables.containers.all(one,\n        !has(one.livenessProbe) && !has(one.readinessProbe) && !has(one.startupProbe) && !has(one.lifecycle))\n      message: pods that pull images have no probes and no hooks\n    - expression: >-\n        request.operation == "DELETE" || (\n        !variables.spec.?hostNetwork.orValue(false) && !variables.spec.?hostPID.orValue(false) && !variables.spec.?hostIPC.orValue(false)\n        && variables.spec.?resourceClaims.orValue([]).size() == 0 && variables.spec.?securityContext.?sysctls.orValue([]).size() == 0\n        && variables.containers.all(one, one.?ports.orValue([]).size() == 0 && one.?volumeDevices.orValue([]).size() == 0))\n      message: pods that pull images use nothing of the host\n    - expression: >-\n        request.operation == "DELETE" || (variables.spec.?securityContext.?runAsNonRoot.orValue(false)\n        && variables.spec.?securityContext.?seccompProfile.?type.orValue("") == "RuntimeDefault"\n        && variables.spec.?securityContext.?appArmorProfile.?type.orValue("RuntimeDefault") != "Unconfined"\n        && variables.containers.all(one, !one.?securityContext.?privileged.orValue(false)\n        && !one.?securityContext.?allowPrivilegeEscalation.orValue(true)\n        && one.?securityContext.?capabilities.?add.orValue([]).size() == 0\n        && one.?securityContext.?runAsNonRoot.orValue(true)\n        && one.?securityContext.?seccompProfile.?type.orValue("RuntimeDefault") == "RuntimeDefault"\n        && one.?securityContext.?appArmorProfile.?type.orValue("RuntimeDefault") != "Unconfined"\n        && one.?securityContext.?procMount.orValue("Default") == "Default"))\n      message: pods that pull images run as nobody, confined and with no privileges\n    - expression: >-\n        request.operation == "DELETE" || (\n        variables.containers.all(one, one.?env.orValue([]).size() == 0 && one.?envFrom.orValue([]).size() == 0)\n        && variables.spec.?imagePullSecrets.orValue([]).all(secret, secret.name in dyn(')
        out.append(str(to_json(given['unique'](given['concat'](read_key(given['values'], 'imagePullSecrets'), read_key(read_key(read_key(given['values'], 'singleuser'), 'image'), 'pullSecrets'))))))
        out.append(')))\n      message: pods that pull images read no Secret and no ConfigMap, but for the pull secrets of the values\n')
        if read_key(read_key(given['values'], 'priorityClasses'), 'enabled'):
            out.append('    - expression: >-\n        request.operation == "DELETE" || variables.spec.?priorityClassName.orValue("") == ')
            out.append(str(to_json(given['cluster_object_name']('puller'))))
            out.append("\n      message: pods that pull images have the puller's priority\n")
        else:
            out.append('    - expression: >-\n        request.operation == "DELETE" || variables.spec.?priority.orValue(0) <= 0\n      message: pods that pull images rank with users at most\n')
        out.append('---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-pods'), 'controllers', {}), 2)))
        out.append('\nspec:\n  policyName: ')
        out.append(str(to_json(given['cluster_object_name']('controllers-pods'))))
        out.append('\n  validationActions: [Deny]\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-sets'), 'controllers', {}), 2)))
        out.append('\nspec:\n  failurePolicy: Fail\n  matchConstraints:\n    matchPolicy: Equivalent\n    resourceRules:\n      - apiGroups: [apps]\n        apiVersions: ["*"]\n        operations: [CREATE, UPDATE, DELETE]\n        resources: [statefulsets, statefulsets/status]\n        scope: Namespaced\n  matchConditions: ')
        out.append(str(macro_only_the_controllers(given)))
        out.append('\n  variables:\n    - name: metadata\n      expression: \'request.operation == "UPDATE" ? dyn(object.metadata) : dyn({})\'\n    - name: oldMetadata\n      expression: \'request.operation == "UPDATE" ? dyn(oldObject.metadata) : dyn({})\'\n    - name: spec\n      expression: \'request.operation == "UPDATE" ? dyn(object.spec) : dyn({})\'\n    - name: oldSpec\n      expression: \'request.operation == "UPDATE" ? dyn(oldObject.spec) : dyn({})\'\n    - name: pod\n      expression: \'request.operation == "UPDATE" ? dyn(object.spec.template.spec) : dyn({})\'\n    - name: oldPod\n      expression: \'request.operation == "UPDATE" ? dyn(oldObject.spec.template.spec) : dyn({})\'\n    - name: containers\n      expression: \'request.operation == "UPDATE" ? dyn(object.spec.template.spec.containers) : dyn([])\'\n    - name: oldContainers\n      expression: \'request.operation == "UPDATE" ? dyn(oldObject.spec.template.spec.containers) : dyn([])\'\n  validations:\n    - expression: >-\n        request.operation == "UPDATE" && request.namespace == ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append(' && request.name in dyn([\n')
        for v_set in each(read_key(given['values'], 'placeholders')):
            if (default(read_key(v_set, 'countBy'), 'pods') == 'nodes'):
                out.append('        ')
                out.append(str(to_json(given['object_name']((str('placeholder-') + str(read_key(v_set, 'name'))), 52))))
                out.append(',\n')
        out.append('        ])\n      message: Roost\'s controllers change those StatefulSets only whose seats are whole nodes\n    - expression: >-\n        variables.metadata.all(key, key in ["managedFields", "resourceVersion", "generation"]\n        || (key in variables.oldMetadata && variables.metadata[key] == variables.oldMetadata[key]))\n        && variables.oldMetadata.all(key, key in ["managedFields", "resourceVersion", "generation"] || key in variables.metadata)\n        && variables.spec.all(key, key == "template" || (key in variables.oldSpec && variables.spec[key] == variables.oldSpec[key]))\n        && variables.oldSpec.all(key, key == "template" || key in variables.spec)\n        && (request.operation != "UPDATE" || (dyn(object.spec.template.metadata) == dyn(oldObject.spec.template.metadata) && dyn(object.?status.orValue({})) == dyn(oldObject.?status.orValue({}))))\n        && variables.pod.all(key, key == "containers" || (key in variables.oldPod && variables.pod[key] == variables.oldPod[key]))\n        && variables.oldPod.all(key, key == "containers" || key in variables.pod)\n      message: of a StatefulSet, Roost\'s controllers change its seats\' resources only\n    - expression: >-\n        variables.containers.size() == variables.oldContainers.size()\n        && variables.containers.all(one, one.?resources.?claims.orValue([]).size() == 0\n        && variables.oldContainers.exists(old, old.name == one.name\n        && one.all(key, key == "resources" || (key in old && one[key] == old[key])) && old.all(key, key == "resources" || key in one)))\n      message: of a seat\'s container, Roost\'s controllers change its resources only\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-sets'), 'controllers', {}), 2)))
        out.append('\nspec:\n  policyName: ')
        out.append(str(to_json(given['cluster_object_name']('controllers-sets'))))
        out.append('\n  validationActions: [Deny]\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-events'), 'controllers', {}), 2)))
        out.append('\nspec:\n  failurePolicy: Fail\n  matchConstraints:\n    matchPolicy: Equivalent\n    resourceRules:\n      - apiGroups: ["", events.k8s.io]\n        apiVersions: ["*"]\n        operations: [CREATE, UPDATE, DELETE]\n        resources: [events]\n        scope: Namespaced\n  matchConditions: ')
        out.append(str(macro_only_the_controllers(given)))
        out.append('\n  validations:\n    - expression: >-\n        request.operation != "DELETE" && object.metadata.?labels[?"app.kubernetes.io/part-of"].orValue("") == "roost"\n        && (request.operation == "CREATE" || oldObject.metadata.?labels[?"app.kubernetes.io/part-of"].orValue("") == "roost")\n      message: Roost\'s controllers write Events of their own, and change nobody else\'s\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-events'), 'controllers', {}), 2)))
        out.append('\nspec:\n  policyName: ')
        out.append(str(to_json(given['cluster_object_name']('controllers-events'))))
        out.append('\n  validationActions: [Deny]\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-scales'), 'controllers', {}), 2)))
        out.append('\nspec:\n  failurePolicy: Fail\n  matchConstraints:\n    matchPolicy: Equivalent\n    resourceRules:\n      - apiGroups: [apps]\n        apiVersions: ["*"]\n        operations: [CREATE, UPDATE, DELETE]\n        resources: ["*/scale"]\n        scope: Namespaced\n  matchConditions: ')
        out.append(str(macro_only_the_controllers(given)))
        out.append('\n  variables:\n    - name: most\n      expression: >-\n        dyn({\n')
        if (read_key(read_key(given['values'], 'placeholder'), 'backend') == 'statefulset'):
            for v_set in each(given['placeholder_sets'](read_key(given['values'], 'placeholders'), read_key(read_key(given['values'], 'placeholder'), 'defaults'))):
                out.append('        ')
                out.append(str(to_json(given['object_name']((str('placeholder-') + str(read_key(v_set, 'name'))), 52))))
                out.append(': [')
                out.append(str(to_json(read_key(v_set, 'replicas'))))
                for v_window in each(read_key(v_set, 'windows')):
                    out.append(', ')
                    out.append(str(to_json(read_key(v_window, 'replicas'))))
                out.append('],\n')
        out.append('        })\n  validations:\n    - expression: >-\n        request.operation == "UPDATE" && request.namespace == ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n        && (request.resource.resource == "statefulsets"\n        ? request.name in variables.most && variables.most[request.name].exists(count, object.spec.?replicas.orValue(0) <= count)\n        : request.resource.resource == "deployments" && request.name == ')
        out.append(str(to_json(given['object_name']('controllers'))))
        out.append('\n        && object.spec.?replicas.orValue(0) <= ')
        out.append(str(to_json(read_key(read_key(given['values'], 'controllers'), 'replicas'))))
        out.append(")\n      message: Roost's controllers scale their placeholders, to no more than the values say, and themselves down\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata:\n")
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-scales'), 'controllers', {}), 2)))
        out.append('\nspec:\n  policyName: ')
        out.append(str(to_json(given['cluster_object_name']('controllers-scales'))))
        out.append('\n  validationActions: [Deny]\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-leases'), 'controllers', {}), 2)))
        out.append('\nspec:\n  failurePolicy: Fail\n  matchConstraints:\n    matchPolicy: Equivalent\n    resourceRules:\n      - apiGroups: [coordination.k8s.io]\n        apiVersions: ["*"]\n        operations: [CREATE, UPDATE, DELETE]\n        resources: [leases]\n        scope: Namespaced\n  matchConditions: ')
        out.append(str(macro_only_the_controllers(given)))
        out.append('\n  validations:\n    - expression: >-\n        request.operation != "DELETE" && request.namespace == ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n        && object.metadata.name == ')
        out.append(str(to_json(given['object_name']('controllers'))))
        out.append("\n      message: Roost's controllers keep their own Lease, and no other\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata:\n")
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-leases'), 'controllers', {}), 2)))
        out.append('\nspec:\n  policyName: ')
        out.append(str(to_json(given['cluster_object_name']('controllers-leases'))))
        out.append('\n  validationActions: [Deny]\n')
    return ''.join(out)


def render_controllers_certificate_policies(given):
    out = []
    if ((((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')) and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')) and (read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'mode') == 'self')) and read_key(given['values'], 'clusterResources')):
        out.append('---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-webhook'), 'controllers', {}), 2)))
        out.append('\nspec:\n  failurePolicy: Fail\n  matchConstraints:\n    matchPolicy: Equivalent\n    resourceRules:\n      - apiGroups: [admissionregistration.k8s.io]\n        apiVersions: ["*"]\n        operations: [CREATE, UPDATE, DELETE]\n        resources: [mutatingwebhookconfigurations]\n        scope: Cluster\n  matchConditions: ')
        out.append(str(macro_only_the_controllers(given)))
        out.append('\n  variables:\n    - name: metadata\n      expression: \'request.operation == "UPDATE" ? dyn(object.metadata) : dyn({})\'\n    - name: oldMetadata\n      expression: \'request.operation == "UPDATE" ? dyn(oldObject.metadata) : dyn({})\'\n    - name: webhooks\n      expression: \'request.operation == "UPDATE" ? dyn(object.?webhooks.orValue([])) : dyn([])\'\n    - name: oldWebhooks\n      expression: \'request.operation == "UPDATE" ? dyn(oldObject.?webhooks.orValue([])) : dyn([])\'\n  validations:\n    - expression: request.operation == "UPDATE" && request.name == ')
        out.append(str(to_json(given['cluster_object_name']('webhook'))))
        out.append('\n      message: Roost\'s controllers change the MutatingWebhookConfiguration of their own release, and make and delete none\n    - expression: >-\n        variables.metadata.all(key, key in ["managedFields", "resourceVersion", "generation"]\n        || (key in variables.oldMetadata && variables.metadata[key] == variables.oldMetadata[key]))\n        && variables.oldMetadata.all(key, key in ["managedFields", "resourceVersion", "generation"] || key in variables.metadata)\n      message: of a MutatingWebhookConfiguration\'s metadata, Roost\'s controllers change nothing\n    - expression: >-\n        variables.webhooks.map(one, one.name) == variables.oldWebhooks.map(one, one.name)\n        && variables.webhooks.all(one, variables.oldWebhooks.exists(old, old.name == one.name\n        && one.all(key, key == "clientConfig" || (key in old && one[key] == old[key])) && old.all(key, key == "clientConfig" || key in one)\n        && one.clientConfig.all(key, key == "caBundle" || (key in old.clientConfig && one.clientConfig[key] == old.clientConfig[key]))\n        && old.clientConfig.all(key, key == "caBundle" || key in one.clientConfig)))\n      message: of a MutatingWebhookConfiguration, Roost\'s controllers change caBundle only\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-webhook'), 'controllers', {}), 2)))
        out.append('\nspec:\n  policyName: ')
        out.append(str(to_json(given['cluster_object_name']('controllers-webhook'))))
        out.append('\n  validationActions: [Deny]\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-secrets'), 'controllers', {}), 2)))
        out.append('\nspec:\n  failurePolicy: Fail\n  matchConstraints:\n    matchPolicy: Equivalent\n    resourceRules:\n      - apiGroups: [""]\n        apiVersions: ["*"]\n        operations: [CREATE, UPDATE, DELETE]\n        resources: [secrets]\n        scope: Namespaced\n  matchConditions: ')
        out.append(str(macro_only_the_controllers(given)))
        out.append('\n  validations:\n    - expression: >-\n        request.operation != "DELETE" && request.namespace == ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n        && object.metadata.name in [')
        out.append(str(to_json(given['object_name']('webhook-ca'))))
        out.append(', ')
        out.append(str(to_json((read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'secretName') or given['object_name']('webhook-leaf')))))
        out.append(']\n      message: Roost\'s controllers write the two Secrets of the webhook\'s certificates, and delete none\n    # A Secret of the type kubernetes.io/service-account-token is filled with a token of whichever account its annotation names.\n    - expression: >-\n        request.operation == "DELETE" || (object.?type.orValue("Opaque") == "Opaque"\n        && object.metadata.?annotations.orValue({}).all(key, !key.contains("kubernetes.io/")))\n      message: the Secrets that Roost\'s controllers write are Opaque, and no annotation of theirs asks for a token\n    - expression: >-\n        request.operation == "DELETE" || object.?data.orValue({}).all(key, key in (object.metadata.name == ')
        out.append(str(to_json(given['object_name']('webhook-ca'))))
        out.append('\n        ? ["ca.crt", "ca.key", "previous-ca.crt", "previous-ca.key"] : ["tls.crt", "tls.key"]))\n      message: Roost\'s controllers keep certificates and keys in their Secrets, and nothing else\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers-secrets'), 'controllers', {}), 2)))
        out.append('\nspec:\n  policyName: ')
        out.append(str(to_json(given['cluster_object_name']('controllers-secrets'))))
        out.append('\n  validationActions: [Deny]\n')
    return ''.join(out)


def render_controllers_clusterrole(given):
    out = []
    if (((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')) and read_key(read_key(given['values'], 'rbac'), 'create')) and read_key(given['values'], 'clusterResources')):
        out.append('apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers'), 'controllers', {}), 2)))
        out.append('\nrules:\n  - apiGroups: [""]\n    resources: [nodes]\n    verbs: [get, list, watch, patch]\n  # The node condition: written where imageGate.nodeCondition asks for it, taken away where it no longer does.\n  - apiGroups: [""]\n    resources: [nodes/status]\n    verbs: [patch]\n  # What else is on the nodes decides where the scheduler puts a seat.\n  - apiGroups: [""]\n    resources: [pods, namespaces]\n    verbs: [get, list, watch]\n  # Events about nodes are kept in the namespace `default`, those about users\' pods in theirs.\n  - apiGroups: ["", events.k8s.io]\n    resources: [events]\n    verbs: [create, patch]\n')
        if ((read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook') and (read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'mode') == 'self')):
            out.append("  # The caBundle, and by an admission policy nothing else of it. With certificates from cert-manager or from a Secret this isn't given.\n  - apiGroups: [admissionregistration.k8s.io]\n    resources: [mutatingwebhookconfigurations]\n    resourceNames: [")
            out.append(str(to_json(given['cluster_object_name']('webhook'))))
            out.append(']\n    verbs: [get, patch]\n')
    return ''.join(out)


def render_controllers_clusterrolebinding(given):
    out = []
    if (((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')) and read_key(read_key(given['values'], 'rbac'), 'create')) and read_key(given['values'], 'clusterResources')):
        out.append('apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('controllers'), 'controllers', {}), 2)))
        out.append('\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: ')
        out.append(str(to_json(given['cluster_object_name']('controllers'))))
        out.append('\nsubjects:\n  - kind: ServiceAccount\n    name: ')
        out.append(str(to_json(given['object_name']('controllers'))))
        out.append('\n    namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
    return ''.join(out)


def render_controllers_configmap(given):
    out = []
    if (read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')):
        out.append('apiVersion: v1\nkind: ConfigMap\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('controllers'), 'controllers', {}), 2)))
        out.append('\ndata:\n  controllers.json: |\n')
        out.append(str(indent(macro_controllers_settings(given), 4)))
        out.append('\n')
    return ''.join(out)


def render_controllers_deployment(given):
    out = []
    v_core = given['core_pod'](read_key(given['values'], 'corePods'), read_key(given['values'], 'controllers'))
    if (read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')):
        out.append('apiVersion: apps/v1\nkind: Deployment\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('controllers'), 'controllers', {}), 2)))
        out.append('\nspec:\n  replicas: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'controllers'), 'replicas'))))
        out.append('\n')
        if read_key(v_core, 'hostNetwork'):
            out.append("  strategy:\n    type: RollingUpdate\n    # On the host's network two don't fit on one node: where there are as many nodes as replicas, an old one must go first.\n    rollingUpdate: {maxUnavailable: 1, maxSurge: 0}\n")
        out.append('  selector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'controllers')))
        out.append('\n  template:\n    metadata:\n      # The settings are read once: new ones must restart it.\n')
        if (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy'):
            out.append('      annotations: ')
            out.append(str(to_json(given['merge'](read_key(v_core, 'annotations'), {'checksum/settings': sha256_of(macro_controllers_settings(given)), 'checksum/scheduler': sha256_of(macro_scheduler_config(given))}))))
            out.append('\n')
        else:
            out.append('      annotations: ')
            out.append(str(to_json(given['merge'](read_key(v_core, 'annotations'), {'checksum/settings': sha256_of(macro_controllers_settings(given))}))))
            out.append('\n')
        out.append('      labels: ')
        out.append(str(macro_pod_labels(given, 'controllers', read_key(v_core, 'labels'))))
        out.append('\n    spec:\n      serviceAccountName: ')
        out.append(str(to_json(given['object_name']('controllers'))))
        out.append('\n      automountServiceAccountToken: true\n      enableServiceLinks: false\n')
        if read_key(v_core, 'priorityClassName'):
            out.append('      priorityClassName: ')
            out.append(str(to_json(read_key(v_core, 'priorityClassName'))))
            out.append('\n')
        if read_key(v_core, 'hostNetwork'):
            out.append('      hostNetwork: true\n      dnsPolicy: ClusterFirstWithHostNet\n')
        if read_key(given['values'], 'imagePullSecrets'):
            out.append('      imagePullSecrets: ')
            out.append(str(macro_pull_secrets(given)))
            out.append('\n')
        if read_key(v_core, 'nodeSelector'):
            out.append('      nodeSelector: ')
            out.append(str(to_json(read_key(v_core, 'nodeSelector'))))
            out.append('\n')
        if read_key(v_core, 'tolerations'):
            out.append('      tolerations: ')
            out.append(str(to_json(read_key(v_core, 'tolerations'))))
            out.append('\n')
        if read_key(v_core, 'affinity'):
            out.append('      affinity: ')
            out.append(str(to_json(read_key(v_core, 'affinity'))))
            out.append('\n')
        out.append('      topologySpreadConstraints: ')
        out.append(str(macro_spread(given, 'controllers')))
        out.append('\n      securityContext: ')
        out.append(str(macro_pod_security(given)))
        out.append('\n      containers:\n        - name: controllers\n          image: ')
        out.append(str(to_json(given['own_image']())))
        out.append('\n          imagePullPolicy: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'image'), 'pullPolicy'))))
        out.append('\n          command:\n            - roost\n            - controllers\n            - --settings=/etc/roost/controllers/controllers.json\n')
        if (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy'):
            out.append('            - --scheduler-config=/etc/roost/scheduler/config.yaml\n')
        out.append('            - ')
        out.append(str(to_json((str('--release=') + str(read_key(given['release'], 'name'))))))
        out.append('\n            - ')
        out.append(str(to_json((str('--namespace=') + str(read_key(given['release'], 'namespace'))))))
        out.append('\n            - ')
        out.append(str(to_json((str('--lease-name=') + str(given['object_name']('controllers'))))))
        out.append('\n            - ')
        out.append(str(to_json((str('--port=') + str(to_int(read_key(read_key(given['values'], 'controllers'), 'port')))))))
        out.append('\n            - ')
        out.append(str(to_json((str('--log-level=') + str(read_key(v_core, 'logLevel'))))))
        out.append('\n')
        if (((read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook') and (read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'mode') == 'self')) and read_key(given['values'], 'clusterResources')):
            out.append('            - ')
            out.append(str(to_json((str('--webhook-configuration=') + str(given['cluster_object_name']('webhook'))))))
            out.append('\n            - ')
            out.append(str(to_json((str('--webhook-service=') + str(given['object_name']('webhook'))))))
            out.append('\n')
            if read_key(read_key(given['values'], 'webhook'), 'url'):
                out.append('            - ')
                out.append(str(to_json((str('--webhook-url=') + str(read_key(read_key(given['values'], 'webhook'), 'url'))))))
                out.append('\n')
            out.append('            - ')
            out.append(str(to_json((str('--ca-secret=') + str(given['object_name']('webhook-ca'))))))
            out.append('\n            - ')
            out.append(str(to_json((str('--leaf-secret=') + str((read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'secretName') or given['object_name']('webhook-leaf')))))))
            out.append('\n')
        if (not read_key(given['values'], 'clusterResources')):
            out.append('            - --own-namespace-only\n')
        if read_key(v_core, 'extraEnv'):
            out.append('          env: ')
            out.append(str(to_json(read_key(v_core, 'extraEnv'))))
            out.append('\n')
        out.append('          ports:\n            - name: metrics\n              containerPort: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'controllers'), 'port'))))
        out.append('\n          # A node that has no time must not kill it for starting slowly, again and again.\n          startupProbe:\n            httpGet: {path: /livez, port: metrics}\n            periodSeconds: 2\n            failureThreshold: 90\n          livenessProbe:\n            httpGet: {path: /livez, port: metrics}\n            failureThreshold: 4\n          readinessProbe:\n            httpGet: {path: /readyz, port: metrics}\n            periodSeconds: 5\n            failureThreshold: 2\n')
        if (read_key(read_key(read_key(given['values'], 'controllers'), 'resources'), 'requests') or read_key(read_key(read_key(given['values'], 'controllers'), 'resources'), 'limits')):
            out.append('          resources:\n')
            if read_key(read_key(read_key(given['values'], 'controllers'), 'resources'), 'requests'):
                out.append('            requests: ')
                out.append(str(to_json(read_key(read_key(read_key(given['values'], 'controllers'), 'resources'), 'requests'))))
                out.append('\n')
            if read_key(read_key(read_key(given['values'], 'controllers'), 'resources'), 'limits'):
                out.append('            limits: ')
                out.append(str(to_json(read_key(read_key(read_key(given['values'], 'controllers'), 'resources'), 'limits'))))
                out.append('\n')
        out.append('          securityContext: ')
        out.append(str(macro_container_security(given)))
        out.append('\n          volumeMounts:\n            - name: settings\n              mountPath: /etc/roost/controllers\n              readOnly: true\n')
        if (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy'):
            out.append('            # The mover asks what this scheduler would do.\n            - name: scheduler\n              mountPath: /etc/roost/scheduler\n              readOnly: true\n')
        out.append('            - name: tmp\n              mountPath: /tmp\n      volumes:\n        - name: settings\n          configMap:\n            name: ')
        out.append(str(to_json(given['object_name']('controllers'))))
        out.append('\n')
        if (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy'):
            out.append('        - name: scheduler\n          configMap:\n            name: ')
            out.append(str(to_json(given['object_name']('scheduler'))))
            out.append('\n')
        out.append('        - name: tmp\n          emptyDir: {medium: Memory, sizeLimit: 16Mi}\n')
    return ''.join(out)


def render_controllers_networkpolicy(given):
    out = []
    if ((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')) and read_key(read_key(given['values'], 'networkPolicy'), 'enabled')):
        out.append('apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('controllers'), 'controllers', {}), 2)))
        out.append('\nspec:\n  podSelector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'controllers')))
        out.append('\n  policyTypes: [Ingress]\n  ingress:\n    # Metrics and probes; nobody calls the controllers otherwise.\n    - ports:\n        - {protocol: TCP, port: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'controllers'), 'port'))))
        out.append(' }\n')
        if read_key(read_key(read_key(given['values'], 'networkPolicy'), 'ingress'), 'controllers'):
            out.append('      from: ')
            out.append(str(to_json(read_key(read_key(read_key(given['values'], 'networkPolicy'), 'ingress'), 'controllers'))))
            out.append('\n')
    return ''.join(out)


def render_controllers_poddisruptionbudget(given):
    out = []
    v_core = given['core_pod'](read_key(given['values'], 'corePods'), read_key(given['values'], 'controllers'))
    if ((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')) and read_key(read_key(v_core, 'pdb'), 'enabled')):
        out.append('apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('controllers'), 'controllers', {}), 2)))
        out.append('\nspec:\n  maxUnavailable: ')
        out.append(str(to_json(read_key(read_key(v_core, 'pdb'), 'maxUnavailable'))))
        out.append("\n  # A replica that doesn't work guards nothing: never let it hold up a drain.\n  unhealthyPodEvictionPolicy: AlwaysAllow\n  selector:\n    matchLabels: ")
        out.append(str(macro_selector(given, 'controllers')))
        out.append('\n')
    return ''.join(out)


def render_controllers_prometheusrule(given):
    out = []
    if ((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')) and read_key(read_key(read_key(given['values'], 'monitoring'), 'prometheusRule'), 'enabled')):
        v_series = (str('{namespace="') + str(read_key(given['release'], 'namespace')) + str('",service="') + str(given['object_name']('controllers')) + str('"}'))
        v_failed = (str('{namespace="') + str(read_key(given['release'], 'namespace')) + str('",service="') + str(given['object_name']('controllers')) + str('",outcome="failed"}'))
        out.append('apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: ')
        out.append(str(to_json(given['object_name']('controllers'))))
        out.append('\n  namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
        if read_key(given['values'], 'commonAnnotations'):
            out.append('  annotations: ')
            out.append(str(to_json(read_key(given['values'], 'commonAnnotations'))))
            out.append('\n')
        out.append('  labels: ')
        out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': 'controllers', 'app.kubernetes.io/managed-by': 'roost', 'app.kubernetes.io/part-of': 'roost'}, read_key(read_key(read_key(given['values'], 'monitoring'), 'prometheusRule'), 'labels')))))
        out.append('\nspec:\n  groups:\n    - name: ')
        out.append(str(to_json((str(given['object_name']('controllers')) + str('.') + str(read_key(given['release'], 'namespace'))))))
        out.append('\n      rules:\n        - alert: RoostControllersWithoutLeader\n          # Also when there is no replica at all: labels then stay as they are, and seats where they are.\n          expr: ')
        out.append(str(to_json((str('(max(roost_controllers_leader') + str(v_series) + str(') or vector(0)) < 1')))))
        out.append("\n          for: 5m\n          labels: {severity: warning}\n          annotations:\n            summary: No replica of Roost's controllers leads, so facts about images and seats grow old.\n        - alert: RoostPlanFailures\n          expr: ")
        out.append(str(to_json((str('sum by (controller) (increase(roost_controllers_plan_failures_total') + str(v_series) + str('[15m])) > 0')))))
        out.append('\n          for: 5m\n          labels: {severity: warning}\n          annotations:\n            summary: ')
        out.append(str(to_json("Roost's controller {{ $labels.controller }} fails while it plans; its log says where.")))
        out.append('\n        - alert: RoostActionsFail\n          expr: ')
        out.append(str(to_json((str('sum by (controller, kind) (increase(roost_controllers_actions_total') + str(v_failed) + str('[15m])) > 5')))))
        out.append('\n          for: 5m\n          labels: {severity: warning}\n          annotations:\n            summary: ')
        out.append(str(to_json("The API server keeps refusing {{ $labels.kind }} of Roost's controller {{ $labels.controller }}; its log says why.")))
        out.append('\n')
        if (read_key(read_key(given['values'], 'imageGate'), 'mode') != 'off'):
            out.append('        - alert: RoostImageGateStuck\n          # Half an hour is long for any image: its users go elsewhere meanwhile, or wait.\n          expr: ')
            out.append(str(to_json((str('max(roost_controllers_gate_oldest_wait_seconds') + str(v_series) + str(') > 1800')))))
            out.append('\n          for: 5m\n          labels: {severity: warning}\n          annotations:\n            summary: ')
            out.append(str(to_json('A node lacks an image since {{ $value | humanizeDuration }}, and users are kept from it.')))
            out.append('\n        - alert: RoostImagesCannotBePulled\n          expr: ')
            out.append(str(to_json((str('max by (reason) (roost_controllers_gate_pull_faults') + str(v_series) + str(') > 0')))))
            out.append('\n          for: 15m\n          labels: {severity: warning}\n          annotations:\n            summary: ')
            out.append(str(to_json("{{ $value }} pulls of users' images fail ({{ $labels.reason }}); Events of the puller's pods name them.")))
            out.append('\n')
        if (read_key(read_key(given['values'], 'imageGate'), 'mode') == 'startupTaint'):
            out.append('        - alert: RoostNodesOpenedWithoutImages\n          expr: ')
            out.append(str(to_json((str('max(roost_controllers_gate_nodes_opened_without_images') + str(v_series) + str(') > 0')))))
            out.append('\n          labels: {severity: warning}\n          annotations:\n            summary: ')
            out.append(str(to_json('{{ $value }} nodes lost their startup taint at its deadline, without their images.')))
            out.append('\n')
        if read_key(read_key(given['values'], 'placeholderMover'), 'enabled'):
            out.append('        - alert: RoostMoverOverBudget\n          # A fifth more than the budget: Prometheus estimates what it did not see.\n          expr: ')
            out.append(str(to_json((str('sum(increase(roost_controllers_evictions_total') + str(v_series) + str('[10m])) > 12 * max(roost_controllers_eviction_budget_per_minute') + str(v_series) + str(')')))))
            out.append('\n          labels: {severity: critical}\n          annotations:\n            summary: ')
            out.append(str(to_json('Roost evicted {{ $value | printf "%.0f" }} placeholders within ten minutes, more than its budget allows.')))
            out.append('\n')
    return ''.join(out)


def render_controllers_role(given):
    out = []
    if ((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')) and read_key(read_key(given['values'], 'rbac'), 'create')):
        out.append('apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('controllers'), 'controllers', {}), 2)))
        out.append('\nrules:\n  # The Lease of the replica that works. It goes with the account that owns it: nobody need delete it.\n  - apiGroups: [coordination.k8s.io]\n    resources: [leases]\n    verbs: [create]\n  - apiGroups: [coordination.k8s.io]\n    resources: [leases]\n    resourceNames: [')
        out.append(str(to_json(given['object_name']('controllers'))))
        out.append(']\n    verbs: [get, update]\n  # What went wrong with a pull is said by the kubelet\'s Events.\n  - apiGroups: ["", events.k8s.io]\n    resources: [events]\n    verbs: [get, list, watch, create, patch]\n')
        if read_key(read_key(given['values'], 'popularImages'), 'enabled'):
            out.append('  # Pods that pull popular images.\n  - apiGroups: [""]\n    resources: [pods]\n    verbs: [get, list, watch, create, delete]\n')
        else:
            out.append('  - apiGroups: [""]\n    resources: [pods]\n    verbs: [get, list, watch, delete]\n')
        out.append('  # Watched whether or not there are seats: none may be left of a former set.\n  - apiGroups: [apps]\n    resources: [statefulsets]\n    verbs: [get, list, watch]\n')
        if (read_key(given['values'], 'placeholders') and (read_key(read_key(given['values'], 'placeholder'), 'backend') == 'statefulset')):
            out.append('  # Seats: moved by eviction, counted by the clock.\n  - apiGroups: [""]\n    resources: [pods/eviction]\n    verbs: [create]\n  - apiGroups: [apps]\n    resources: [statefulsets/scale]\n    resourceNames: [')
            for v_set in each(read_key(given['values'], 'placeholders')):
                out.append(str(to_json(given['object_name']((str('placeholder-') + str(read_key(v_set, 'name'))), 52))))
                out.append(', ')
            out.append(']\n    verbs: [get, patch]\n')
            for v_set in each(read_key(given['values'], 'placeholders')):
                if (default(read_key(v_set, 'countBy'), 'pods') == 'nodes'):
                    out.append('  # How much one seat of this set asks for: a whole node.\n  - apiGroups: [apps]\n    resources: [statefulsets]\n    resourceNames: [')
                    out.append(str(to_json(given['object_name']((str('placeholder-') + str(read_key(v_set, 'name'))), 52))))
                    out.append(']\n    verbs: [patch]\n')
        if (((read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook') and (read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'mode') == 'self')) and read_key(given['values'], 'clusterResources')):
            out.append('  # The webhook\'s certificate authority and its certificate. RBAC can\'t name what is created: an admission policy does. Only where\n  # that is rendered, for whoever may create any Secret has a token of every account of the namespace.\n  - apiGroups: [""]\n    resources: [secrets]\n    verbs: [create]\n  - apiGroups: [""]\n    resources: [secrets]\n    resourceNames: [')
            out.append(str(to_json(given['object_name']('webhook-ca'))))
            out.append(', ')
            out.append(str(to_json((read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'secretName') or given['object_name']('webhook-leaf')))))
            out.append(']\n    verbs: [get, update]\n')
        if read_key(read_key(given['values'], 'controllers'), 'cleanupOnUninstall'):
            out.append('  # The cleanup before an uninstall stops the controllers first, or they would write again what it takes away. Only how many:\n  # whoever may patch a Deployment is every account of its namespace.\n  - apiGroups: [apps]\n    resources: [deployments/scale]\n    resourceNames: [')
            out.append(str(to_json(given['object_name']('controllers'))))
            out.append(']\n    verbs: [get, patch]\n')
    return ''.join(out)


def render_controllers_rolebinding(given):
    out = []
    if ((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')) and read_key(read_key(given['values'], 'rbac'), 'create')):
        out.append('apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('controllers'), 'controllers', {}), 2)))
        out.append('\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: ')
        out.append(str(to_json(given['object_name']('controllers'))))
        out.append('\nsubjects:\n  - kind: ServiceAccount\n    name: ')
        out.append(str(to_json(given['object_name']('controllers'))))
        out.append('\n    namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
    return ''.join(out)


def render_controllers_service(given):
    out = []
    if (read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')):
        out.append('apiVersion: v1\nkind: Service\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('controllers'), 'controllers', {}), 2)))
        out.append('\nspec:\n  clusterIP: None\n  selector: ')
        out.append(str(macro_selector(given, 'controllers')))
        out.append('\n  ports:\n    - {name: metrics, port: 8080, targetPort: metrics, protocol: TCP}\n')
    return ''.join(out)


def render_controllers_serviceaccount(given):
    out = []
    if (read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')):
        out.append('apiVersion: v1\nkind: ServiceAccount\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('controllers'), 'controllers', {}), 2)))
        out.append('\n# The controllers mount their token themselves, in their pods alone.\nautomountServiceAccountToken: false\n')
    return ''.join(out)


def render_controllers_servicemonitor(given):
    out = []
    if ((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'controllers'), 'enabled')) and read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'enabled')):
        out.append('apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata:\n  name: ')
        out.append(str(to_json(given['object_name']('controllers'))))
        out.append('\n  namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
        if read_key(given['values'], 'commonAnnotations'):
            out.append('  annotations: ')
            out.append(str(to_json(read_key(given['values'], 'commonAnnotations'))))
            out.append('\n')
        out.append('  labels: ')
        out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': 'controllers', 'app.kubernetes.io/managed-by': 'roost', 'app.kubernetes.io/part-of': 'roost'}, read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'labels')))))
        out.append('\nspec:\n  selector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'controllers')))
        out.append('\n  endpoints:\n    - port: metrics\n      path: /metrics\n      interval: ')
        out.append(str(to_json(read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'interval'))))
        out.append('\n')
    return ''.join(out)


def render_images_nodereadinessrule(given):
    out = []
    if ((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'imageGate'), 'nodeReadinessRule')) and read_key(given['values'], 'clusterResources')):
        v_selector = given['merge'](read_key(read_key(given['values'], 'singleuser'), 'nodeSelector'), read_key(read_key(given['values'], 'prePuller'), 'nodeSelector'))
        out.append('apiVersion: readiness.node.x-k8s.io/v1alpha1\nkind: NodeReadinessRule\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name'](given['puller_component'](v_selector)), 'controllers', {}), 2)))
        out.append('\nspec:\n  conditions:\n    - type: ')
        out.append(str(to_json(given['images_condition']())))
        out.append('\n      requiredStatus: "True"\n  # An image that goes later doesn\'t send users away.\n  enforcementMode: bootstrap-only\n  taint:\n    key: ')
        out.append(str(to_json(given['readiness_taint']())))
        out.append('\n    effect: NoSchedule\n  nodeSelector:\n    matchLabels: ')
        out.append(str(to_json(v_selector)))
        out.append('\n')
    return ''.join(out)


def render_placeholder_capacitybuffer(given):
    out = []
    if (read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'placeholder'), 'backend') == 'capacityBuffer')):
        for v_set in each(given['placeholder_sets'](read_key(given['values'], 'placeholders'), read_key(read_key(given['values'], 'placeholder'), 'defaults'))):
            v_class = read_key(read_key(given['values'], 'podClasses'), read_key(read_key(given['values'], 'placeholder'), 'podClass'))
            if (v_class is None):
                out.append(str(given['fail']('placeholder.podClass is no key of podClasses')))
                out.append('\n')
            out.append('---\napiVersion: v1\nkind: PodTemplate\nmetadata:\n')
            out.append(str(indent(macro_metadata(given, given['object_name']((str('placeholder-') + str(read_key(v_set, 'name'))), 52), 'placeholder', {}), 2)))
            out.append('\ntemplate:\n')
            out.append(str(indent(macro_placeholder_pod(given, v_set, v_class, False), 2)))
            out.append('\n---\napiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata:\n')
            out.append(str(indent(macro_metadata(given, given['object_name']((str('placeholder-') + str(read_key(v_set, 'name'))), 52), 'placeholder', {}), 2)))
            out.append('\nspec:\n  provisioningStrategy: buffer.x-k8s.io/active-capacity\n  podTemplateRef:\n    name: ')
            out.append(str(to_json(given['object_name']((str('placeholder-') + str(read_key(v_set, 'name'))), 52))))
            out.append('\n  replicas: ')
            out.append(str(to_json(read_key(v_set, 'replicas'))))
            out.append('\n')
    return ''.join(out)


def render_placeholder_networkpolicy(given):
    out = []
    if (((read_key(given['values'], 'enabled') and read_key(given['values'], 'placeholders')) and (read_key(read_key(given['values'], 'placeholder'), 'backend') == 'statefulset')) and read_key(read_key(given['values'], 'networkPolicy'), 'enabled')):
        out.append('apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('placeholder'), 'placeholder', {}), 2)))
        out.append('\nspec:\n  podSelector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'placeholder')))
        out.append('\n  policyTypes: [Ingress, Egress]\n')
    return ''.join(out)


def render_placeholder_poddisruptionbudget(given):
    out = []
    if (read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'placeholder'), 'backend') == 'statefulset')):
        for v_set in each(read_key(given['values'], 'placeholders')):
            out.append('---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n')
            out.append(str(indent(macro_metadata(given, given['object_name']((str('placeholder-') + str(read_key(v_set, 'name'))), 52), 'placeholder', {}), 2)))
            out.append('\nspec:\n  minAvailable: 0\n  unhealthyPodEvictionPolicy: AlwaysAllow\n  selector:\n    matchLabels: ')
            out.append(str(macro_placeholder_selector(given, read_key(v_set, 'name'))))
            out.append('\n')
    return ''.join(out)


def render_placeholder_statefulset(given):
    out = []
    if (read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'placeholder'), 'backend') == 'statefulset')):
        for v_set in each(given['placeholder_sets'](read_key(given['values'], 'placeholders'), read_key(read_key(given['values'], 'placeholder'), 'defaults'))):
            v_class = read_key(read_key(given['values'], 'podClasses'), read_key(read_key(given['values'], 'placeholder'), 'podClass'))
            if (v_class is None):
                out.append(str(given['fail']('placeholder.podClass is no key of podClasses')))
                out.append('\n')
            out.append('---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n')
            out.append(str(indent(macro_metadata(given, given['object_name']((str('placeholder-') + str(read_key(v_set, 'name'))), 52), 'placeholder', {}), 2)))
            out.append('\nspec:\n')
            if (read_key(read_key(given['values'], 'controllers'), 'enabled') and (read_key(v_set, 'windows') or (read_key(v_set, 'countBy') == 'nodes'))):
                out.append('  # The controllers set `replicas` by the clock: an upgrade must not set it back.\n')
            else:
                out.append('  replicas: ')
                out.append(str(to_json(read_key(v_set, 'replicas'))))
                out.append('\n')
            out.append("  # All at once: seats don't wait for each other.\n  podManagementPolicy: Parallel\n  selector:\n    matchLabels: ")
            out.append(str(macro_placeholder_selector(given, read_key(v_set, 'name'))))
            out.append('\n  template:\n')
            if (read_key(read_key(given['values'], 'controllers'), 'enabled') and (read_key(v_set, 'countBy') == 'nodes')):
                out.append('    # The controllers set `resources`, which an upgrade must not set back either.\n')
                out.append(str(indent(macro_placeholder_pod(given, given['merge'](v_set, {'resources': {}}), v_class, read_key(v_class, 'attract')), 4)))
                out.append('\n')
            else:
                out.append(str(indent(macro_placeholder_pod(given, v_set, v_class, read_key(v_class, 'attract')), 4)))
                out.append('\n')
    return ''.join(out)


def render_puller_daemonset(given):
    out = []
    if (read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'prePuller'), 'enabled')):
        v_method = given['puller_method']()
        for v_group in each(given['pullers'](read_key(given['values'], 'singleuser'), read_key(given['values'], 'prePuller'))):
            out.append('---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n')
            out.append(str(indent(macro_metadata(given, read_key(v_group, 'name'), 'puller', {}), 2)))
            out.append('\nspec:\n  # A changed set of images doesn\'t wait for a node that is slow or full.\n  updateStrategy:\n    type: RollingUpdate\n    rollingUpdate: {maxUnavailable: "100%"}\n  selector:\n    matchLabels: ')
            out.append(str(to_json(given['merge']({'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': 'puller'}, {'roost.hub.jupyter.org/puller-set': read_key(v_group, 'name')}))))
            out.append('\n  template:\n    metadata:\n')
            if read_key(read_key(given['values'], 'prePuller'), 'annotations'):
                out.append('      annotations: ')
                out.append(str(to_json(read_key(read_key(given['values'], 'prePuller'), 'annotations'))))
                out.append('\n')
            out.append('      labels: ')
            out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), read_key(read_key(given['values'], 'prePuller'), 'labels'), {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': 'puller', 'app.kubernetes.io/part-of': 'roost', 'roost.hub.jupyter.org/puller-set': read_key(v_group, 'name')}))))
            out.append('\n    spec:\n      serviceAccountName: ')
            out.append(str(to_json(given['object_name']('puller'))))
            out.append('\n      automountServiceAccountToken: false\n      enableServiceLinks: false\n')
            if read_key(read_key(given['values'], 'priorityClasses'), 'enabled'):
                out.append('      priorityClassName: ')
                out.append(str(to_json(given['cluster_object_name']('puller'))))
                out.append('\n')
            out.append('      # A pause has nothing to finish.\n      terminationGracePeriodSeconds: 0\n')
            if (read_key(given['values'], 'imagePullSecrets') or read_key(read_key(read_key(given['values'], 'singleuser'), 'image'), 'pullSecrets')):
                out.append('      imagePullSecrets: ')
                out.append(str(macro_puller_pull_secrets(given)))
                out.append('\n')
            if read_key(v_group, 'nodeSelector'):
                out.append('      nodeSelector: ')
                out.append(str(to_json(read_key(v_group, 'nodeSelector'))))
                out.append('\n')
            if read_key(v_group, 'requiredNodeTerms'):
                out.append('      affinity:\n        nodeAffinity:\n          requiredDuringSchedulingIgnoredDuringExecution:\n            nodeSelectorTerms: ')
                out.append(str(to_json(read_key(v_group, 'requiredNodeTerms'))))
                out.append('\n')
            out.append('      tolerations:\n        # A node sheds this taint when its images are there.\n        - {key: ')
            out.append(str(to_json(given['startup_taint']())))
            out.append(', operator: Exists}\n')
            if read_key(read_key(given['values'], 'imageGate'), 'nodeReadinessRule'):
                out.append('        - {key: ')
                out.append(str(to_json(given['readiness_taint']())))
                out.append(', operator: Exists}\n')
            for v_toleration in each(read_key(v_group, 'tolerations')):
                out.append('        - ')
                out.append(str(to_json(v_toleration)))
                out.append('\n')
            out.append('      securityContext: ')
            out.append(str(macro_pod_security(given)))
            out.append('\n')
            if (v_method == 'noop'):
                out.append('      initContainers:\n        - name: pause\n          image: ')
                out.append(str(to_json(given['own_image']())))
                out.append('\n          imagePullPolicy: ')
                out.append(str(to_json(read_key(read_key(given['values'], 'image'), 'pullPolicy'))))
                out.append('\n          command: [/usr/local/lib/roost/pause, install, /roost-pause/pause]\n          resources: ')
                out.append(str(macro_puller_resources(given)))
                out.append('\n          securityContext: ')
                out.append(str(macro_container_security(given)))
                out.append('\n          volumeMounts:\n            - name: roost-pause\n              mountPath: /roost-pause\n')
            out.append('      containers:\n')
            for v_image in each(read_key(v_group, 'images')):
                out.append('        - name: ')
                out.append(str(to_json(given['puller_container'](v_image))))
                out.append('\n')
                if (v_method == 'noop'):
                    out.append('          image: ')
                    out.append(str(to_json(v_image)))
                    out.append('\n          # Never Always: a node that holds the image must not need the registry.\n          imagePullPolicy: IfNotPresent\n          command: [/roost-pause/pause]\n')
                else:
                    out.append('          image: ')
                    out.append(str(to_json((str(read_key(read_key(read_key(given['values'], 'placeholder'), 'image'), 'name')) + str(':') + str(read_key(read_key(read_key(given['values'], 'placeholder'), 'image'), 'tag'))))))
                    out.append('\n          imagePullPolicy: ')
                    out.append(str(to_json(read_key(read_key(read_key(given['values'], 'placeholder'), 'image'), 'pullPolicy'))))
                    out.append('\n')
                out.append('          resources: ')
                out.append(str(macro_puller_resources(given)))
                out.append('\n          securityContext: ')
                out.append(str(macro_container_security(given)))
                out.append('\n          volumeMounts:\n')
                if (v_method == 'noop'):
                    out.append('            - name: roost-pause\n              mountPath: /roost-pause\n              readOnly: true\n')
                else:
                    out.append('            - name: ')
                    out.append(str(to_json(given['puller_container'](v_image))))
                    out.append('\n              mountPath: /image\n              readOnly: true\n')
            out.append('      volumes:\n')
            if (v_method == 'noop'):
                out.append('        - name: roost-pause\n          emptyDir: {}\n')
            else:
                for v_image in each(read_key(v_group, 'images')):
                    out.append('        - name: ')
                    out.append(str(to_json(given['puller_container'](v_image))))
                    out.append('\n          image: {reference: ')
                    out.append(str(to_json(v_image)))
                    out.append(', pullPolicy: IfNotPresent}\n')
    return ''.join(out)


def render_puller_networkpolicy(given):
    out = []
    if ((read_key(given['values'], 'enabled') and ((read_key(read_key(given['values'], 'prePuller'), 'enabled') and given['pullers'](read_key(given['values'], 'singleuser'), read_key(given['values'], 'prePuller'))) or (read_key(read_key(given['values'], 'controllers'), 'enabled') and read_key(read_key(given['values'], 'popularImages'), 'enabled')))) and read_key(read_key(given['values'], 'networkPolicy'), 'enabled')):
        out.append('apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('puller'), 'puller', {}), 2)))
        out.append('\nspec:\n  podSelector:\n    matchLabels: ')
        out.append(str(to_json({'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name')})))
        out.append('\n    matchExpressions:\n      - {key: app.kubernetes.io/component, operator: In, values: ')
        out.append(str(to_json(['puller', 'popular-puller'])))
        out.append(' }\n  policyTypes: [Ingress, Egress]\n')
    return ''.join(out)


def render_puller_serviceaccount(given):
    out = []
    if (read_key(given['values'], 'enabled') and ((read_key(read_key(given['values'], 'prePuller'), 'enabled') and given['pullers'](read_key(given['values'], 'singleuser'), read_key(given['values'], 'prePuller'))) or (read_key(read_key(given['values'], 'controllers'), 'enabled') and read_key(read_key(given['values'], 'popularImages'), 'enabled')))):
        out.append('apiVersion: v1\nkind: ServiceAccount\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('puller'), 'puller', {}), 2)))
        out.append('\nautomountServiceAccountToken: false\n')
    return ''.join(out)


def render_recorder_clusterrole(given):
    out = []
    if (((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'recorder'), 'enabled')) and read_key(read_key(given['values'], 'rbac'), 'create')) and read_key(given['values'], 'clusterResources')):
        out.append('apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('recorder'), 'recorder', {}), 2)))
        out.append('\nrules:\n  # Pods of all namespaces: what else is on a node decides where the scheduler puts a user.\n  - apiGroups: [""]\n    resources: [nodes, pods, namespaces]\n    verbs: [list, watch]\n  - apiGroups: [events.k8s.io]\n    resources: [events]\n    verbs: [list, watch]\n')
    return ''.join(out)


def render_recorder_clusterrolebinding(given):
    out = []
    if (((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'recorder'), 'enabled')) and read_key(read_key(given['values'], 'rbac'), 'create')) and read_key(given['values'], 'clusterResources')):
        out.append('apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('recorder'), 'recorder', {}), 2)))
        out.append('\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: ')
        out.append(str(to_json(given['cluster_object_name']('recorder'))))
        out.append('\nsubjects:\n  - kind: ServiceAccount\n    name: ')
        out.append(str(to_json(given['object_name']('recorder'))))
        out.append('\n    namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
    return ''.join(out)


def render_recorder_configmap(given):
    out = []
    if (read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'recorder'), 'enabled')):
        out.append('apiVersion: v1\nkind: ConfigMap\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('recorder'), 'recorder', {}), 2)))
        out.append('\ndata:\n  recorder.json: |\n')
        out.append(str(indent(macro_recorder_settings(given), 4)))
        out.append('\n')
    return ''.join(out)


def render_recorder_deployment(given):
    out = []
    v_core = given['core_pod'](read_key(given['values'], 'corePods'), read_key(given['values'], 'recorder'))
    if (read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'recorder'), 'enabled')):
        out.append('apiVersion: apps/v1\nkind: Deployment\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('recorder'), 'recorder', {}), 2)))
        out.append('\nspec:\n  # Two would record everything twice, and a file of SQLite has one writer: an old pod ends before a new one starts, which then\n  # asks for what happened meanwhile.\n  replicas: 1\n  strategy:\n    type: Recreate\n  selector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'recorder')))
        out.append('\n  template:\n    metadata:\n      # The settings are read once: new ones must restart it.\n')
        if (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy'):
            out.append('      annotations: ')
            out.append(str(to_json(given['merge']({'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes': 'tmp'}, read_key(v_core, 'annotations'), {'checksum/settings': sha256_of(macro_recorder_settings(given)), 'checksum/scheduler': sha256_of(macro_scheduler_config(given))}))))
            out.append('\n')
        else:
            out.append('      annotations: ')
            out.append(str(to_json(given['merge']({'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes': 'tmp'}, read_key(v_core, 'annotations'), {'checksum/settings': sha256_of(macro_recorder_settings(given))}))))
            out.append('\n')
        out.append('      labels: ')
        out.append(str(macro_pod_labels(given, 'recorder', read_key(v_core, 'labels'))))
        out.append('\n    spec:\n      serviceAccountName: ')
        out.append(str(to_json(given['object_name']('recorder'))))
        out.append('\n      automountServiceAccountToken: true\n      enableServiceLinks: false\n')
        if read_key(v_core, 'priorityClassName'):
            out.append('      priorityClassName: ')
            out.append(str(to_json(read_key(v_core, 'priorityClassName'))))
            out.append('\n')
        if read_key(v_core, 'hostNetwork'):
            out.append('      hostNetwork: true\n      dnsPolicy: ClusterFirstWithHostNet\n')
        if read_key(given['values'], 'imagePullSecrets'):
            out.append('      imagePullSecrets: ')
            out.append(str(macro_pull_secrets(given)))
            out.append('\n')
        if read_key(v_core, 'nodeSelector'):
            out.append('      nodeSelector: ')
            out.append(str(to_json(read_key(v_core, 'nodeSelector'))))
            out.append('\n')
        if read_key(v_core, 'tolerations'):
            out.append('      tolerations: ')
            out.append(str(to_json(read_key(v_core, 'tolerations'))))
            out.append('\n')
        if read_key(v_core, 'affinity'):
            out.append('      affinity: ')
            out.append(str(to_json(read_key(v_core, 'affinity'))))
            out.append('\n')
        out.append('      # fsGroup: a new volume belongs to root.\n      securityContext: ')
        out.append(str(macro_pod_security(given)))
        out.append('\n      containers:\n        - name: recorder\n          image: ')
        out.append(str(to_json(given['own_image']())))
        out.append('\n          imagePullPolicy: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'image'), 'pullPolicy'))))
        out.append('\n          command:\n            - roost\n            - record\n            - --settings=/etc/roost/recorder/recorder.json\n')
        if (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy'):
            out.append('            - --scheduler-config=/etc/roost/scheduler/config.yaml\n')
        out.append('            - ')
        out.append(str(to_json((str('--port=') + str(to_int(read_key(read_key(given['values'], 'recorder'), 'port')))))))
        out.append('\n            - ')
        out.append(str(to_json((str('--log-level=') + str(read_key(v_core, 'logLevel'))))))
        out.append('\n          env:\n            # Not an option of the command: a password stays out of the list of processes, and `kubectl exec` finds it too.\n            - name: ROOST_DATABASE\n')
        if read_key(read_key(read_key(given['values'], 'recorder'), 'database'), 'existingSecret'):
            out.append('              valueFrom:\n                secretKeyRef:\n                  name: ')
            out.append(str(to_json(read_key(read_key(read_key(given['values'], 'recorder'), 'database'), 'existingSecret'))))
            out.append('\n                  key: url\n')
        else:
            out.append('              value: /data/roost.db\n')
        for v_one in each(read_key(v_core, 'extraEnv')):
            out.append('            - ')
            out.append(str(to_json(v_one)))
            out.append('\n')
        out.append('          ports:\n            - name: metrics\n              containerPort: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'recorder'), 'port'))))
        out.append('\n          # Before it answers it waits for the database, and brings old tables up to date.\n          startupProbe:\n            httpGet: {path: /livez, port: metrics}\n            failureThreshold: 180\n          livenessProbe:\n            httpGet: {path: /livez, port: metrics}\n            failureThreshold: 4\n          readinessProbe:\n            httpGet: {path: /readyz, port: metrics}\n            periodSeconds: 5\n            failureThreshold: 2\n')
        if (read_key(read_key(read_key(given['values'], 'recorder'), 'resources'), 'requests') or read_key(read_key(read_key(given['values'], 'recorder'), 'resources'), 'limits')):
            out.append('          resources:\n')
            if read_key(read_key(read_key(given['values'], 'recorder'), 'resources'), 'requests'):
                out.append('            requests: ')
                out.append(str(to_json(read_key(read_key(read_key(given['values'], 'recorder'), 'resources'), 'requests'))))
                out.append('\n')
            if read_key(read_key(read_key(given['values'], 'recorder'), 'resources'), 'limits'):
                out.append('            limits: ')
                out.append(str(to_json(read_key(read_key(read_key(given['values'], 'recorder'), 'resources'), 'limits'))))
                out.append('\n')
        out.append('          securityContext: ')
        out.append(str(macro_container_security(given)))
        out.append('\n          volumeMounts:\n            - name: settings\n              mountPath: /etc/roost/recorder\n              readOnly: true\n')
        if (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy'):
            out.append('            # Each decision is compared with what this scheduler should do.\n            - name: scheduler\n              mountPath: /etc/roost/scheduler\n              readOnly: true\n')
        if (not read_key(read_key(read_key(given['values'], 'recorder'), 'database'), 'existingSecret')):
            out.append('            - name: data\n              mountPath: /data\n')
        out.append('            - name: tmp\n              mountPath: /tmp\n      volumes:\n        - name: settings\n          configMap:\n            name: ')
        out.append(str(to_json(given['object_name']('recorder'))))
        out.append('\n')
        if (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy'):
            out.append('        - name: scheduler\n          configMap:\n            name: ')
            out.append(str(to_json(given['object_name']('scheduler'))))
            out.append('\n')
        if (not read_key(read_key(read_key(given['values'], 'recorder'), 'database'), 'existingSecret')):
            out.append('        - name: data\n')
            if read_key(read_key(read_key(read_key(given['values'], 'recorder'), 'database'), 'persistence'), 'enabled'):
                out.append('          persistentVolumeClaim:\n            claimName: ')
                out.append(str(to_json(given['object_name']('recorder'))))
                out.append('\n')
            else:
                out.append('          emptyDir:\n            sizeLimit: ')
                out.append(str(to_json(read_key(read_key(read_key(read_key(given['values'], 'recorder'), 'database'), 'persistence'), 'size'))))
                out.append('\n')
        out.append('        # On disk: SQLite sorts here what a report asks for.\n        - name: tmp\n          emptyDir: {sizeLimit: 1Gi}\n')
    return ''.join(out)


def render_recorder_networkpolicy(given):
    out = []
    if ((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'recorder'), 'enabled')) and read_key(read_key(given['values'], 'networkPolicy'), 'enabled')):
        out.append('apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('recorder'), 'recorder', {}), 2)))
        out.append('\nspec:\n  podSelector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'recorder')))
        out.append('\n  policyTypes: [Ingress]\n  ingress:\n    # Metrics and probes; nobody calls the recorder otherwise.\n    - ports:\n        - {protocol: TCP, port: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'recorder'), 'port'))))
        out.append(' }\n')
        if read_key(read_key(read_key(given['values'], 'networkPolicy'), 'ingress'), 'recorder'):
            out.append('      from: ')
            out.append(str(to_json(read_key(read_key(read_key(given['values'], 'networkPolicy'), 'ingress'), 'recorder'))))
            out.append('\n')
    return ''.join(out)


def render_recorder_persistentvolumeclaim(given):
    out = []
    if (((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'recorder'), 'enabled')) and read_key(read_key(read_key(read_key(given['values'], 'recorder'), 'database'), 'persistence'), 'enabled')) and (not read_key(read_key(read_key(given['values'], 'recorder'), 'database'), 'existingSecret'))):
        out.append('apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('recorder'), 'recorder', {'helm.sh/resource-policy': 'keep'}), 2)))
        out.append('\nspec:\n  accessModes: ')
        out.append(str(to_json(read_key(read_key(read_key(read_key(given['values'], 'recorder'), 'database'), 'persistence'), 'accessModes'))))
        out.append('\n')
        if read_key(read_key(read_key(read_key(given['values'], 'recorder'), 'database'), 'persistence'), 'storageClassName'):
            out.append('  storageClassName: ')
            out.append(str(to_json(read_key(read_key(read_key(read_key(given['values'], 'recorder'), 'database'), 'persistence'), 'storageClassName'))))
            out.append('\n')
        out.append('  resources:\n    requests:\n      storage: ')
        out.append(str(to_json(read_key(read_key(read_key(read_key(given['values'], 'recorder'), 'database'), 'persistence'), 'size'))))
        out.append('\n')
    return ''.join(out)


def render_recorder_prometheusrule(given):
    out = []
    if ((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'recorder'), 'enabled')) and read_key(read_key(read_key(given['values'], 'monitoring'), 'prometheusRule'), 'enabled')):
        v_series = (str('{namespace="') + str(read_key(given['release'], 'namespace')) + str('",service="') + str(given['object_name']('recorder')) + str('"}'))
        out.append('apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: ')
        out.append(str(to_json(given['object_name']('recorder'))))
        out.append('\n  namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
        if read_key(given['values'], 'commonAnnotations'):
            out.append('  annotations: ')
            out.append(str(to_json(read_key(given['values'], 'commonAnnotations'))))
            out.append('\n')
        out.append('  labels: ')
        out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': 'recorder', 'app.kubernetes.io/managed-by': 'roost', 'app.kubernetes.io/part-of': 'roost'}, read_key(read_key(read_key(given['values'], 'monitoring'), 'prometheusRule'), 'labels')))))
        out.append('\nspec:\n  groups:\n    - name: ')
        out.append(str(to_json((str(given['object_name']('recorder')) + str('.') + str(read_key(given['release'], 'namespace'))))))
        out.append("\n      rules:\n        - alert: RoostRecorderNotRecording\n          # Also when it isn't there at all. A database that fails has an alert of its own.\n          expr: ")
        out.append(str(to_json((str('(max(roost_recorder_recording') + str(v_series) + str(') or vector(0)) < 1 unless max(roost_recorder_database_failing') + str(v_series) + str(') > 0')))))
        out.append("\n          for: 10m\n          labels: {severity: warning}\n          annotations:\n            summary: Roost's recorder does not record; its /readyz says what is missing.\n        - alert: RoostRecorderDatabaseFails\n          expr: ")
        out.append(str(to_json((str('max(roost_recorder_database_failing') + str(v_series) + str(') > 0')))))
        out.append("\n          # Nothing is lost so far: API servers forget after five minutes, and what waits in memory comes first.\n          for: 3m\n          labels: {severity: warning}\n          annotations:\n            summary: The database of Roost's recorder takes no rows, so a gap in the record is near.\n        - alert: RoostRecorderBehind\n          expr: ")
        out.append(str(to_json((str('max(roost_recorder_behind_seconds') + str(v_series) + str(') > 60 unless max(roost_recorder_database_failing') + str(v_series) + str(') > 0')))))
        out.append('\n          for: 5m\n          labels: {severity: warning}\n          annotations:\n            summary: ')
        out.append(str(to_json("Roost's recorder is {{ $value | humanizeDuration }} behind: its database or its processor is too slow for the cluster.")))
        out.append('\n        - alert: RoostRecorderGap\n          expr: ')
        out.append(str(to_json((str('time() - max(roost_recorder_last_gap_timestamp_seconds') + str(v_series) + str(') < 3600')))))
        out.append('\n          labels: {severity: warning}\n          annotations:\n            summary: ')
        out.append(str(to_json("Roost's recorder marked a gap {{ $value | humanizeDuration }} ago: the API server had forgotten what happened.")))
        out.append('\n')
    return ''.join(out)


def render_recorder_service(given):
    out = []
    if (read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'recorder'), 'enabled')):
        out.append('apiVersion: v1\nkind: Service\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('recorder'), 'recorder', {}), 2)))
        out.append('\nspec:\n  clusterIP: None\n  selector: ')
        out.append(str(macro_selector(given, 'recorder')))
        out.append('\n  ports:\n    - {name: metrics, port: 8080, targetPort: metrics, protocol: TCP}\n')
    return ''.join(out)


def render_recorder_serviceaccount(given):
    out = []
    if (read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'recorder'), 'enabled')):
        out.append('apiVersion: v1\nkind: ServiceAccount\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('recorder'), 'recorder', {}), 2)))
        out.append('\n# The recorder mounts its token itself, in its pod alone.\nautomountServiceAccountToken: false\n')
    return ''.join(out)


def render_recorder_servicemonitor(given):
    out = []
    if ((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'recorder'), 'enabled')) and read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'enabled')):
        out.append('apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata:\n  name: ')
        out.append(str(to_json(given['object_name']('recorder'))))
        out.append('\n  namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
        if read_key(given['values'], 'commonAnnotations'):
            out.append('  annotations: ')
            out.append(str(to_json(read_key(given['values'], 'commonAnnotations'))))
            out.append('\n')
        out.append('  labels: ')
        out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': 'recorder', 'app.kubernetes.io/managed-by': 'roost', 'app.kubernetes.io/part-of': 'roost'}, read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'labels')))))
        out.append('\nspec:\n  selector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'recorder')))
        out.append('\n  endpoints:\n    - port: metrics\n      path: /metrics\n      interval: ')
        out.append(str(to_json(read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'interval'))))
        out.append('\n')
    return ''.join(out)


def render_scheduler_clusterrolebindings(given):
    out = []
    if (((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy')) and read_key(read_key(given['values'], 'rbac'), 'create')) and read_key(given['values'], 'clusterResources')):
        for v_component, v_role in each(items({'scheduler': 'system:kube-scheduler', 'volume-scheduler': 'system:volume-scheduler'})):
            out.append('---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n')
            out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name'](v_component), 'scheduler', {}), 2)))
            out.append('\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: ')
            out.append(str(to_json(v_role)))
            out.append('\nsubjects:\n  - kind: ServiceAccount\n    name: ')
            out.append(str(to_json(given['object_name']('scheduler'))))
            out.append('\n    namespace: ')
            out.append(str(to_json(read_key(given['release'], 'namespace'))))
            out.append('\n')
    return ''.join(out)


def render_scheduler_configmap(given):
    out = []
    if (read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy')):
        out.append('apiVersion: v1\nkind: ConfigMap\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('scheduler'), 'scheduler', {}), 2)))
        out.append('\ndata:\n  config.yaml: |\n')
        out.append(str(indent(macro_scheduler_config(given), 4)))
        out.append('\n')
    return ''.join(out)


def render_scheduler_deployment(given):
    out = []
    v_core = given['core_pod'](read_key(given['values'], 'corePods'), read_key(given['values'], 'scheduler'))
    if (read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy')):
        out.append('apiVersion: apps/v1\nkind: Deployment\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('scheduler'), 'scheduler', {}), 2)))
        out.append('\nspec:\n  replicas: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'scheduler'), 'replicas'))))
        out.append('\n')
        if read_key(v_core, 'hostNetwork'):
            out.append("  strategy:\n    type: RollingUpdate\n    # On the host's network two don't fit on one node: where there are as many nodes as replicas, an old one must go first.\n    rollingUpdate: {maxUnavailable: 1, maxSurge: 0}\n")
        out.append('  selector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'scheduler')))
        out.append('\n  template:\n    metadata:\n      # kube-scheduler reads its configuration once: a new one must restart it.\n      annotations: ')
        out.append(str(to_json(given['merge'](read_key(v_core, 'annotations'), {'checksum/config': sha256_of(macro_scheduler_config(given))}))))
        out.append('\n      labels: ')
        out.append(str(macro_pod_labels(given, 'scheduler', read_key(v_core, 'labels'))))
        out.append('\n    spec:\n      serviceAccountName: ')
        out.append(str(to_json(given['object_name']('scheduler'))))
        out.append('\n      automountServiceAccountToken: true\n      enableServiceLinks: false\n')
        if read_key(v_core, 'priorityClassName'):
            out.append('      priorityClassName: ')
            out.append(str(to_json(read_key(v_core, 'priorityClassName'))))
            out.append('\n')
        if read_key(v_core, 'hostNetwork'):
            out.append('      hostNetwork: true\n      dnsPolicy: ClusterFirstWithHostNet\n')
        if read_key(given['values'], 'imagePullSecrets'):
            out.append('      imagePullSecrets: ')
            out.append(str(macro_pull_secrets(given)))
            out.append('\n')
        if read_key(v_core, 'nodeSelector'):
            out.append('      nodeSelector: ')
            out.append(str(to_json(read_key(v_core, 'nodeSelector'))))
            out.append('\n')
        if read_key(v_core, 'tolerations'):
            out.append('      tolerations: ')
            out.append(str(to_json(read_key(v_core, 'tolerations'))))
            out.append('\n')
        if read_key(v_core, 'affinity'):
            out.append('      affinity: ')
            out.append(str(to_json(read_key(v_core, 'affinity'))))
            out.append('\n')
        out.append('      topologySpreadConstraints: ')
        out.append(str(macro_spread(given, 'scheduler')))
        out.append('\n      securityContext: ')
        out.append(str(macro_pod_security(given)))
        out.append('\n      containers:\n        - name: kube-scheduler\n          image: ')
        out.append(str(to_json((str(read_key(read_key(read_key(given['values'], 'scheduler'), 'image'), 'name')) + str(':') + str((read_key(read_key(read_key(given['values'], 'scheduler'), 'image'), 'tag') or given['for_cluster'](read_key(read_key(read_key(given['values'], 'scheduler'), 'image'), 'tags'))))))))
        out.append('\n          imagePullPolicy: ')
        out.append(str(to_json(read_key(read_key(read_key(given['values'], 'scheduler'), 'image'), 'pullPolicy'))))
        out.append('\n          command:\n            - kube-scheduler\n            - --config=/etc/kube-scheduler/config.yaml\n            # Else it wants to read a ConfigMap in kube-system, only to authenticate callers of its metrics.\n            - --authentication-skip-lookup=true\n')
        if read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'enabled'):
            out.append("            # Counts and durations, no pod's name: open to scrapes, so that no token need be sent to a self-signed certificate.\n            - --authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics\n")
        out.append('            - ')
        out.append(str(to_json((str('--secure-port=') + str(to_int(read_key(read_key(given['values'], 'scheduler'), 'port')))))))
        out.append('\n            - ')
        out.append(str(to_json((str('--v=') + str(to_int(read_key(read_key(given['values'], 'scheduler'), 'logLevel')))))))
        out.append('\n')
        for v_gate, v_is_on in each(items(read_key(read_key(read_key(given['values'], 'scheduler'), 'featureGates'), given['minor_for_cluster'](read_key(read_key(given['values'], 'scheduler'), 'featureGates'))))):
            if v_is_on:
                out.append('            - ')
                out.append(str(to_json((str('--feature-gates=') + str(v_gate) + str('=true')))))
                out.append('\n')
            else:
                out.append('            - ')
                out.append(str(to_json((str('--feature-gates=') + str(v_gate) + str('=false')))))
                out.append('\n')
        v_flush_after = given['for_cluster'](read_key(read_key(given['values'], 'scheduler'), 'flushAfter'))
        if v_flush_after:
            out.append('            - ')
            out.append(str(to_json((str('--pod-max-in-unschedulable-pods-duration=') + str(v_flush_after)))))
            out.append('\n')
        if read_key(v_core, 'extraEnv'):
            out.append('          env: ')
            out.append(str(to_json(read_key(v_core, 'extraEnv'))))
            out.append('\n')
        out.append('          ports:\n            - name: https\n              containerPort: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'scheduler'), 'port'))))
        out.append('\n          # A node that has no time must not kill it for starting slowly, again and again.\n          startupProbe:\n            httpGet: {path: /livez, port: https, scheme: HTTPS}\n            periodSeconds: 2\n            failureThreshold: 90\n          livenessProbe:\n            httpGet: {path: /livez, port: https, scheme: HTTPS}\n            failureThreshold: 4\n          readinessProbe:\n            httpGet: {path: /readyz, port: https, scheme: HTTPS}\n')
        if (read_key(read_key(read_key(given['values'], 'scheduler'), 'resources'), 'requests') or read_key(read_key(read_key(given['values'], 'scheduler'), 'resources'), 'limits')):
            out.append('          resources:\n')
            if read_key(read_key(read_key(given['values'], 'scheduler'), 'resources'), 'requests'):
                out.append('            requests: ')
                out.append(str(to_json(read_key(read_key(read_key(given['values'], 'scheduler'), 'resources'), 'requests'))))
                out.append('\n')
            if read_key(read_key(read_key(given['values'], 'scheduler'), 'resources'), 'limits'):
                out.append('            limits: ')
                out.append(str(to_json(read_key(read_key(read_key(given['values'], 'scheduler'), 'resources'), 'limits'))))
                out.append('\n')
        out.append('          securityContext: ')
        out.append(str(macro_container_security(given)))
        out.append('\n          volumeMounts:\n            - name: config\n              mountPath: /etc/kube-scheduler\n              readOnly: true\n      volumes:\n        - name: config\n          configMap:\n            name: ')
        out.append(str(to_json(given['object_name']('scheduler'))))
        out.append('\n')
    return ''.join(out)


def render_scheduler_lease(given):
    out = []
    if (read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy')):
        out.append('apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('scheduler'), 'scheduler', {}), 2)))
        out.append('\n')
    return ''.join(out)


def render_scheduler_networkpolicy(given):
    out = []
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy')) and read_key(read_key(given['values'], 'networkPolicy'), 'enabled')):
        out.append('apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('scheduler'), 'scheduler', {}), 2)))
        out.append('\nspec:\n  podSelector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'scheduler')))
        out.append('\n  policyTypes: [Ingress]\n  ingress:\n    # Probes, and metrics for those whom the API server lets.\n    - ports:\n        - {protocol: TCP, port: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'scheduler'), 'port'))))
        out.append(' }\n')
        if read_key(read_key(read_key(given['values'], 'networkPolicy'), 'ingress'), 'scheduler'):
            out.append('      from: ')
            out.append(str(to_json(read_key(read_key(read_key(given['values'], 'networkPolicy'), 'ingress'), 'scheduler'))))
            out.append('\n')
    return ''.join(out)


def render_scheduler_poddisruptionbudget(given):
    out = []
    v_core = given['core_pod'](read_key(given['values'], 'corePods'), read_key(given['values'], 'scheduler'))
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy')) and read_key(read_key(v_core, 'pdb'), 'enabled')):
        out.append('apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('scheduler'), 'scheduler', {}), 2)))
        out.append('\nspec:\n  maxUnavailable: ')
        out.append(str(to_json(read_key(read_key(v_core, 'pdb'), 'maxUnavailable'))))
        out.append("\n  # A replica that doesn't work guards nothing: never let it hold up a drain.\n  unhealthyPodEvictionPolicy: AlwaysAllow\n  selector:\n    matchLabels: ")
        out.append(str(macro_selector(given, 'scheduler')))
        out.append('\n')
    return ''.join(out)


def render_scheduler_role(given):
    out = []
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy')) and read_key(read_key(given['values'], 'rbac'), 'create')):
        out.append('apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('scheduler'), 'scheduler', {}), 2)))
        out.append('\nrules:\n  - apiGroups: [coordination.k8s.io]\n    resources: [leases]\n    resourceNames: [')
        out.append(str(to_json(given['object_name']('scheduler'))))
        out.append(']\n    verbs: [get, update]\n')
    return ''.join(out)


def render_scheduler_rolebinding(given):
    out = []
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy')) and read_key(read_key(given['values'], 'rbac'), 'create')):
        out.append('apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('scheduler'), 'scheduler', {}), 2)))
        out.append('\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: ')
        out.append(str(to_json(given['object_name']('scheduler'))))
        out.append('\nsubjects:\n  - kind: ServiceAccount\n    name: ')
        out.append(str(to_json(given['object_name']('scheduler'))))
        out.append('\n    namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
    return ''.join(out)


def render_scheduler_service(given):
    out = []
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy')) and read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'enabled')):
        out.append('apiVersion: v1\nkind: Service\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('scheduler'), 'scheduler', {}), 2)))
        out.append('\nspec:\n  clusterIP: None\n  selector: ')
        out.append(str(macro_selector(given, 'scheduler')))
        out.append('\n  ports:\n    - {name: https, port: 443, targetPort: https, protocol: TCP}\n')
    return ''.join(out)


def render_scheduler_serviceaccount(given):
    out = []
    if (read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy')):
        out.append('apiVersion: v1\nkind: ServiceAccount\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('scheduler'), 'scheduler', {}), 2)))
        out.append('\n# kube-scheduler mounts its token itself, in its pod alone.\nautomountServiceAccountToken: false\n')
    return ''.join(out)


def render_scheduler_servicemonitor(given):
    out = []
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy')) and read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'enabled')):
        out.append('apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata:\n  name: ')
        out.append(str(to_json(given['object_name']('scheduler'))))
        out.append('\n  namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
        if read_key(given['values'], 'commonAnnotations'):
            out.append('  annotations: ')
            out.append(str(to_json(read_key(given['values'], 'commonAnnotations'))))
            out.append('\n')
        out.append('  labels: ')
        out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': 'scheduler', 'app.kubernetes.io/managed-by': 'roost', 'app.kubernetes.io/part-of': 'roost'}, read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'labels')))))
        out.append('\nspec:\n  selector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'scheduler')))
        out.append('\n  endpoints:\n    - port: https\n      path: /metrics\n      scheme: https\n      tlsConfig: {insecureSkipVerify: true}\n      interval: ')
        out.append(str(to_json(read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'interval'))))
        out.append('\n')
    return ''.join(out)


def render_shared_admission_policies(given):
    out = []
    if (((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'policy')) and read_key(given['values'], 'clusterResources')) and given['kube_at_least']('1.36')):
        v_image_labels = given['pulled_labels'](read_key(given['values'], 'singleuser'), read_key(given['values'], 'prePuller'))
        for v_name, v_class in each(items(read_key(given['values'], 'podClasses'))):
            out.append('---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata:\n')
            out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']((str('class-') + str(v_name))), 'admission', {}), 2)))
            out.append('\nspec:\n  failurePolicy: Ignore\n  reinvocationPolicy: IfNeeded\n  matchConstraints:\n    matchPolicy: Equivalent\n    resourceRules:\n      - apiGroups: [""]\n        apiVersions: [v1]\n        operations: [CREATE]\n        resources: [pods]\n        scope: Namespaced\n    objectSelector:\n      matchLabels: ')
            out.append(str(to_json(read_key(read_key(v_class, 'match'), 'labels'))))
            out.append('\n    namespaceSelector:\n')
            if (read_key(read_key(v_class, 'match'), 'namespaceSelector') is None):
                out.append('      matchLabels: ')
                out.append(str(to_json({'kubernetes.io/metadata.name': read_key(given['release'], 'namespace')})))
                out.append('\n')
            else:
                if read_key(read_key(read_key(v_class, 'match'), 'namespaceSelector'), 'matchLabels'):
                    out.append('      matchLabels: ')
                    out.append(str(to_json(read_key(read_key(read_key(v_class, 'match'), 'namespaceSelector'), 'matchLabels'))))
                    out.append('\n')
                out.append('      matchExpressions:\n        - {key: ')
                out.append(str(to_json('kubernetes.io/metadata.name')))
                out.append(', operator: NotIn, values: [kube-system]}\n')
                for v_expression in each(read_key(read_key(read_key(v_class, 'match'), 'namespaceSelector'), 'matchExpressions')):
                    out.append('        - ')
                    out.append(str(to_json(v_expression)))
                    out.append('\n')
            out.append('  matchConditions:\n    - name: not-bound-yet\n      expression: object.spec.?nodeName.orValue("") == ""\n    - name: no-mirror-pod\n      expression: \'!("kubernetes.io/config.mirror" in object.metadata.?annotations.orValue({}))\'\n    - name: not-opted-out\n      expression: ')
            out.append(str(to_json((str("object.metadata.?annotations[?'") + str('roost.hub.jupyter.org/opt-out') + str("'].orValue('') != 'true'")))))
            out.append('\n    - name: no-daemon\n      expression: \'!object.metadata.?ownerReferences.orValue([]).exists(owner, owner.kind == "DaemonSet")\'\n  variables:\n    # A pod belongs to one class: the one with most labels, then the first by name. Not a match condition: those don\'t see the\n    # namespace\'s labels.\n    - name: isOfAnotherClass\n      expression: >-\n        false')
            for v_other, v_rival in each(items(read_key(given['values'], 'podClasses'))):
                out.append(' || (')
                out.append(str(to_json(read_key(read_key(v_rival, 'match'), 'labels'))))
                out.append('.size() > ')
                out.append(str(to_json(read_key(read_key(v_class, 'match'), 'labels'))))
                out.append('.size() || (')
                out.append(str(to_json(read_key(read_key(v_rival, 'match'), 'labels'))))
                out.append('.size() == ')
                out.append(str(to_json(read_key(read_key(v_class, 'match'), 'labels'))))
                out.append('.size() && ')
                out.append(str(to_json(v_other)))
                out.append(' < ')
                out.append(str(to_json(v_name)))
                out.append(')) && ')
                out.append(str(macro_cel_belongs(given, read_key(v_rival, 'match'))))
            out.append(' || false\n\n    - name: preferredNodes\n      expression: object.spec.?affinity.?nodeAffinity.?preferredDuringSchedulingIgnoredDuringExecution.orValue([])\n    - name: imageLabels\n      expression: |-\n        ')
            out.append(str(to_json(v_image_labels)))
            out.append('\n    # The labels of those of the pod\'s images that the puller brings.\n    - name: held\n      expression: >-\n        (object.spec.containers.map(c, c.?image.orValue("")) + object.spec.?initContainers.orValue([]).map(c, c.?image.orValue("")))\n        .filter(image, image in variables.imageLabels).map(image, variables.imageLabels[image]).distinct()\n    - name: missingPreferred\n      expression: |-\n        [{"weight": dyn(0)}].filter(none, false)\n')
            for v_term in each(read_key(v_class, 'preferredNodeTerms')):
                out.append('        + (variables.preferredNodes.exists(term, ')
                out.append(str(macro_cel_same_node_term(given, read_key(v_term, 'preference'))))
                out.append(') ? [] : [{"weight": dyn(')
                out.append(str(to_int(read_key(v_term, 'weight'))))
                out.append('), "preference": dyn(')
                out.append(str(macro_cel_node_term(given, read_key(v_term, 'preference'))))
                out.append(')}])\n')
            if (read_key(v_class, 'imageGate') and ((read_key(read_key(given['values'], 'imageGate'), 'mode') == 'prefer') or (((read_key(read_key(given['values'], 'imageGate'), 'mode') == 'requireLabel') and read_key(read_key(given['values'], 'controllers'), 'enabled')) and read_key(read_key(given['values'], 'controllers'), 'replicas')))):
                out.append('        + variables.held.filter(label, !variables.preferredNodes.exists(term, term.preference.?matchExpressions.orValue([]).exists(one, one.key == label)))\n        .map(label, {"weight": dyn(')
                out.append(str(to_int(read_key(read_key(given['values'], 'imageGate'), 'preferWeight'))))
                out.append('), "preference": dyn({"matchExpressions": [{"key": dyn(label), "operator": dyn("In"), "values": dyn(["true"])}]})})\n')
            out.append('  mutations:\n')
            if ((read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy') and read_key(v_class, 'profile')):
                out.append('    - patchType: JSONPatch\n      jsonPatch:\n        # "default-scheduler" is what the API server fills in: it can\'t be told from unset.\n        expression: >-\n          variables.isOfAnotherClass ? [] :\n          object.spec.?schedulerName.orValue("default-scheduler") in ')
                out.append(str(macro_cel_schedulers(given)))
                out.append('\n          ? [JSONPatch{op: "add", path: "/spec/schedulerName", value: ')
                out.append(str(to_json(given['scheduler_name'](read_key(v_class, 'profile')))))
                out.append('}] : []\n')
            out.append('    - patchType: JSONPatch\n      jsonPatch:\n        expression: >-\n          variables.isOfAnotherClass ? [] :\n          variables.missingPreferred.size() == 0 ? [] : ')
            out.append(str(macro_cel_way_to_node_affinity(given)))
            out.append('\n          + (variables.preferredNodes.size() > 0 ? [] : [JSONPatch{op: "add", path: "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution", value: []}])\n          + variables.missingPreferred.map(term, JSONPatch{op: "add", path: "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/-", value: term})\n')
            for v_other, v_weight in each(items(read_key(v_class, 'join'))):
                if (read_key(read_key(given['values'], 'podClasses'), v_other) is None):
                    out.append(str(given['fail']((str("podClasses has no class '") + str(v_other) + str("', which a join or avoid names")))))
                    out.append('\n')
                out.append('    - patchType: JSONPatch\n      jsonPatch:\n        expression: >-\n          variables.isOfAnotherClass ? [] :\n          object.spec.?affinity.?podAffinity.?preferredDuringSchedulingIgnoredDuringExecution.orValue([])\n          .exists(term, term.podAffinityTerm.topologyKey == ')
                out.append(str(to_json('kubernetes.io/hostname')))
                out.append(' && term.podAffinityTerm.?labelSelector.?matchLabels.orValue({}) == ')
                out.append(str(to_json(read_key(read_key(read_key(read_key(given['values'], 'podClasses'), v_other), 'match'), 'labels'))))
                out.append(') ? [] :\n          ')
                out.append(str(macro_cel_way_to_pod_affinity(given)))
                out.append('\n          + [JSONPatch{op: "add", path: "/spec/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution/-", value: {"weight": dyn(')
                out.append(str(to_int(v_weight)))
                out.append('), "podAffinityTerm": dyn(')
                out.append(str(macro_cel_pod_term(given, read_key(v_class, 'match'), read_key(read_key(read_key(given['values'], 'podClasses'), v_other), 'match'))))
                out.append(')}}]\n')
            for v_other, v_weight in each(items(read_key(v_class, 'avoid'))):
                if (read_key(read_key(given['values'], 'podClasses'), v_other) is None):
                    out.append(str(given['fail']((str("podClasses has no class '") + str(v_other) + str("', which a join or avoid names")))))
                    out.append('\n')
                out.append('    - patchType: JSONPatch\n      jsonPatch:\n        expression: >-\n          variables.isOfAnotherClass ? [] :\n          object.spec.?affinity.?podAntiAffinity.?preferredDuringSchedulingIgnoredDuringExecution.orValue([])\n          .exists(term, term.podAffinityTerm.topologyKey == ')
                out.append(str(to_json('kubernetes.io/hostname')))
                out.append(' && term.podAffinityTerm.?labelSelector.?matchLabels.orValue({}) == ')
                out.append(str(to_json(read_key(read_key(read_key(read_key(given['values'], 'podClasses'), v_other), 'match'), 'labels'))))
                out.append(') ? [] :\n          ')
                out.append(str(macro_cel_way_to_pod_anti_affinity(given)))
                out.append('\n          + [JSONPatch{op: "add", path: "/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/-", value: {"weight": dyn(')
                out.append(str(to_int(v_weight)))
                out.append('), "podAffinityTerm": dyn(')
                out.append(str(macro_cel_pod_term(given, read_key(v_class, 'match'), read_key(read_key(read_key(given['values'], 'podClasses'), v_other), 'match'))))
                out.append(')}}]\n')
            out.append('---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata:\n')
            out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']((str('class-') + str(v_name))), 'admission', {}), 2)))
            out.append('\nspec:\n  policyName: ')
            out.append(str(to_json(given['cluster_object_name']((str('class-') + str(v_name))))))
            out.append('\n')
    return ''.join(out)


def render_shared_grafana_dashboard(given):
    out = []
    if (read_key(given['values'], 'enabled') and read_key(read_key(read_key(given['values'], 'monitoring'), 'grafanaDashboard'), 'enabled')):
        out.append('apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ')
        out.append(str(to_json(given['object_name']('dashboard'))))
        out.append('\n  namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
        if read_key(given['values'], 'commonAnnotations'):
            out.append('  annotations: ')
            out.append(str(to_json(read_key(given['values'], 'commonAnnotations'))))
            out.append('\n')
        out.append('  labels: ')
        out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': 'dashboard', 'app.kubernetes.io/managed-by': 'roost', 'app.kubernetes.io/part-of': 'roost'}, read_key(read_key(read_key(given['values'], 'monitoring'), 'grafanaDashboard'), 'labels')))))
        out.append('\ndata:\n  roost.json: |\n    {\n     "title": ')
        out.append(str(to_json((str('Roost: ') + str(read_key(given['release'], 'name')) + str(' in ') + str(read_key(given['release'], 'namespace'))))))
        out.append(',\n     "tags": [\n      "roost"\n     ],\n     "schemaVersion": 39,\n     "editable": true,\n     "graphTooltip": 1,\n     "refresh": "1m",\n     "time": {\n      "from": "now-6h",\n      "to": "now"\n     },\n     "templating": {\n      "list": [\n       {\n        "name": "datasource",\n        "type": "datasource",\n        "query": "prometheus",\n        "label": "Prometheus"\n       },\n       {\n        "name": "namespace",\n        "type": "constant",\n        "query": ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append(',\n        "hide": 2\n       },\n       {\n        "name": "webhook",\n        "type": "constant",\n        "query": ')
        out.append(str(to_json(given['object_name']('webhook'))))
        out.append(',\n        "hide": 2\n       },\n       {\n        "name": "controllers",\n        "type": "constant",\n        "query": ')
        out.append(str(to_json(given['object_name']('controllers'))))
        out.append(',\n        "hide": 2\n       },\n       {\n        "name": "recorder",\n        "type": "constant",\n        "query": ')
        out.append(str(to_json(given['object_name']('recorder'))))
        out.append(',\n        "hide": 2\n       },\n       {\n        "name": "scheduler",\n        "type": "constant",\n        "query": ')
        out.append(str(to_json(given['object_name']('scheduler'))))
        out.append(',\n        "hide": 2\n       }\n      ]\n     },\n     "panels": [\n      {\n       "type": "row",\n       "id": 1,\n       "title": "Placement",\n       "collapsed": false,\n       "gridPos": {\n        "x": 0,\n        "y": 0,\n        "w": 24,\n        "h": 1\n       },\n       "panels": []\n      },\n      {\n       "type": "timeseries",\n       "id": 2,\n       "title": "What became of new pods?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 0,\n        "y": 1,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "ops",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum by (class, result) (rate(roost_webhook_reviews_total{namespace=\\"$namespace\\",service=\\"$webhook\\"}[$__rate_interval]))",\n         "legendFormat": ')
        out.append(str(to_json('{{class}} {{result}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 3,\n       "title": "How long does a review take?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 8,\n        "y": 1,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "s",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "histogram_quantile(0.5, sum by (le) (rate(roost_webhook_review_duration_seconds_bucket{namespace=\\"$namespace\\",service=\\"$webhook\\"}[$__rate_interval])))",\n         "legendFormat": "half of them"\n        },\n        {\n         "refId": "B",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "histogram_quantile(0.99, sum by (le) (rate(roost_webhook_review_duration_seconds_bucket{namespace=\\"$namespace\\",service=\\"$webhook\\"}[$__rate_interval])))",\n         "legendFormat": "99 of 100"\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 4,\n       "title": "Which pods came through without being placed?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 16,\n        "y": 1,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max by (class) (roost_webhook_unplaced_pods{namespace=\\"$namespace\\",service=\\"$webhook\\"})",\n         "legendFormat": ')
        out.append(str(to_json('{{class}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 5,\n       "title": "Who was let through to nodes without the image, and why?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 0,\n        "y": 9,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "ops",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum by (class, reason) (rate(roost_webhook_gate_degradations_total{namespace=\\"$namespace\\",service=\\"$webhook\\"}[$__rate_interval]))",\n         "legendFormat": ')
        out.append(str(to_json('{{class}}: {{reason}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 6,\n       "title": "Is Roost\'s scheduler at work?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 8,\n        "y": 9,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "s",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "min by (part) (roost_webhook_lease_age_seconds{namespace=\\"$namespace\\",service=\\"$webhook\\"})",\n         "legendFormat": ')
        out.append(str(to_json('since the {{part}} renewed its Lease')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 7,\n       "title": "Which pods wait for a node, and which were left to the cluster\'s scheduler?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 16,\n        "y": 9,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max by (class) (roost_webhook_pods_waiting_for_scheduler{namespace=\\"$namespace\\",service=\\"$webhook\\"})",\n         "legendFormat": ')
        out.append(str(to_json('{{class}} waits')))
        out.append('\n        },\n        {\n         "refId": "B",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum by (class) (increase(roost_webhook_pods_left_to_cluster_scheduler_total{namespace=\\"$namespace\\",service=\\"$webhook\\"}[5m]))",\n         "legendFormat": ')
        out.append(str(to_json('{{class}} left in five minutes')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 8,\n       "title": "How long does Roost\'s scheduler take?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 0,\n        "y": 17,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "s",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "histogram_quantile(0.99, sum by (profile, le) (rate(scheduler_scheduling_attempt_duration_seconds_bucket{namespace=\\"$namespace\\",service=\\"$scheduler\\"}[$__rate_interval])))",\n         "legendFormat": ')
        out.append(str(to_json('{{profile}}, 99 of 100')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 9,\n       "title": "Where do builds live?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 8,\n        "y": 17,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max by (class) (roost_webhook_ring_nodes{namespace=\\"$namespace\\",service=\\"$webhook\\"})",\n         "legendFormat": ')
        out.append(str(to_json('nodes for {{class}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "row",\n       "id": 10,\n       "title": "Images",\n       "collapsed": false,\n       "gridPos": {\n        "x": 0,\n        "y": 25,\n        "w": 24,\n        "h": 1\n       },\n       "panels": []\n      },\n      {\n       "type": "timeseries",\n       "id": 11,\n       "title": "How many nodes wait for images?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 0,\n        "y": 26,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max(roost_controllers_gate_nodes_waiting{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": "lack an image"\n        },\n        {\n         "refId": "B",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max(roost_controllers_gate_nodes_tainted{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": "carry the startup taint"\n        },\n        {\n         "refId": "C",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max(roost_controllers_gate_nodes_opened_without_images{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": "were opened without"\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 12,\n       "title": "How long does the longest wait?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 8,\n        "y": 26,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "s",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max(roost_controllers_gate_oldest_wait_seconds{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": "longest wait"\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 13,\n       "title": "Which images are missing?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 16,\n        "y": 26,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max by (image) (roost_controllers_gate_images_missing{namespace=\\"$namespace\\",service=\\"$controllers\\"}) > 0",\n         "legendFormat": ')
        out.append(str(to_json('{{image}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 14,\n       "title": "Why can images not be pulled?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 0,\n        "y": 34,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max by (reason) (roost_controllers_gate_pull_faults{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": ')
        out.append(str(to_json('{{reason}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 15,\n       "title": "What becomes of popular images?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 8,\n        "y": 34,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max(roost_controllers_popular_images_held{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": "on nodes"\n        },\n        {\n         "refId": "B",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max(roost_controllers_popular_images_missing{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": "missing"\n        },\n        {\n         "refId": "C",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max(roost_controllers_popular_images_pulling{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": "being pulled"\n        },\n        {\n         "refId": "D",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max(roost_controllers_popular_images_backing_off{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": "failed, tried later"\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 16,\n       "title": "Which images are popular?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 16,\n        "y": 34,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "topk(10, max by (image) (roost_controllers_popular_image_users{namespace=\\"$namespace\\",service=\\"$controllers\\"}))",\n         "legendFormat": ')
        out.append(str(to_json('{{image}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "row",\n       "id": 17,\n       "title": "Placeholders",\n       "collapsed": false,\n       "gridPos": {\n        "x": 0,\n        "y": 42,\n        "w": 24,\n        "h": 1\n       },\n       "panels": []\n      },\n      {\n       "type": "timeseries",\n       "id": 18,\n       "title": "Where are the placeholders?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 0,\n        "y": 43,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max by (set, state) (roost_controllers_placeholders{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": ')
        out.append(str(to_json('{{set}} {{state}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 19,\n       "title": "How fast do they move?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 8,\n        "y": 43,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "60 * sum(rate(roost_controllers_evictions_total{namespace=\\"$namespace\\",service=\\"$controllers\\"}[5m]))",\n         "legendFormat": "evictions a minute"\n        },\n        {\n         "refId": "B",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max(roost_controllers_eviction_budget_per_minute{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": "budget"\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 20,\n       "title": "Why do they stay?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 16,\n        "y": 43,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max by (set, reason) (roost_controllers_placeholder_moves_held{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": ')
        out.append(str(to_json('{{set}}: {{reason}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 21,\n       "title": "How old is the node that draws them?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 0,\n        "y": 51,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "s",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max by (set) (roost_controllers_placeholder_marked_node_age_seconds{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": ')
        out.append(str(to_json('{{set}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "row",\n       "id": 22,\n       "title": "The record",\n       "collapsed": false,\n       "gridPos": {\n        "x": 0,\n        "y": 59,\n        "w": 24,\n        "h": 1\n       },\n       "panels": []\n      },\n      {\n       "type": "timeseries",\n       "id": 23,\n       "title": "Is everything recorded?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 0,\n        "y": 60,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max(roost_recorder_recording{namespace=\\"$namespace\\",service=\\"$recorder\\"})",\n         "legendFormat": "recording"\n        },\n        {\n         "refId": "B",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max(roost_recorder_database_failing{namespace=\\"$namespace\\",service=\\"$recorder\\"})",\n         "legendFormat": "database fails"\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 24,\n       "title": "How far behind is the record?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 8,\n        "y": 60,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "s",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "max(roost_recorder_behind_seconds{namespace=\\"$namespace\\",service=\\"$recorder\\"})",\n         "legendFormat": "oldest that waits"\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 25,\n       "title": "What is recorded?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 16,\n        "y": 60,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "ops",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum by (table) (rate(roost_recorder_rows_total{namespace=\\"$namespace\\",service=\\"$recorder\\"}[$__rate_interval]))",\n         "legendFormat": ')
        out.append(str(to_json('{{table}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 26,\n       "title": "How long does a write to the record take?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 0,\n        "y": 68,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "s",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "histogram_quantile(0.5, sum by (le) (rate(roost_recorder_write_duration_seconds_bucket{namespace=\\"$namespace\\",service=\\"$recorder\\"}[$__rate_interval])))",\n         "legendFormat": "half of them"\n        },\n        {\n         "refId": "B",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "histogram_quantile(0.99, sum by (le) (rate(roost_recorder_write_duration_seconds_bucket{namespace=\\"$namespace\\",service=\\"$recorder\\"}[$__rate_interval])))",\n         "legendFormat": "99 of 100"\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 27,\n       "title": "What does the record lack?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 8,\n        "y": 68,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum(roost_recorder_rows_total{namespace=\\"$namespace\\",service=\\"$recorder\\",table=\\"gap\\"})",\n         "legendFormat": "gaps since its start"\n        },\n        {\n         "refId": "B",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum by (kind) (roost_recorder_odd_objects_total{namespace=\\"$namespace\\",service=\\"$recorder\\"})",\n         "legendFormat": ')
        out.append(str(to_json('{{kind}} left out since its start')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 28,\n       "title": "What holds the recorder up?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 16,\n        "y": 68,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "ops",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum(rate(roost_recorder_waits_total{namespace=\\"$namespace\\",service=\\"$recorder\\"}[$__rate_interval]))",\n         "legendFormat": "streams that wait for the database"\n        },\n        {\n         "refId": "B",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum by (kind) (rate(roost_recorder_stream_errors_total{namespace=\\"$namespace\\",service=\\"$recorder\\"}[$__rate_interval]))",\n         "legendFormat": ')
        out.append(str(to_json('broken watch of {{kind}}')))
        out.append('\n        },\n        {\n         "refId": "C",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum(rate(roost_recorder_store_errors_total{namespace=\\"$namespace\\",service=\\"$recorder\\"}[$__rate_interval]))",\n         "legendFormat": "faults of the database"\n        }\n       ]\n      },\n      {\n       "type": "row",\n       "id": 29,\n       "title": "Roost itself",\n       "collapsed": false,\n       "gridPos": {\n        "x": 0,\n        "y": 76,\n        "w": 24,\n        "h": 1\n       },\n       "panels": []\n      },\n      {\n       "type": "timeseries",\n       "id": 30,\n       "title": "Does somebody lead?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 0,\n        "y": 77,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "short",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum(roost_controllers_leader{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": "leaders"\n        },\n        {\n         "refId": "B",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "count(roost_controllers_leader{namespace=\\"$namespace\\",service=\\"$controllers\\"})",\n         "legendFormat": "replicas"\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 31,\n       "title": "How long does planning take?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 8,\n        "y": 77,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "s",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "histogram_quantile(0.99, sum by (controller, le) (rate(roost_controllers_plan_duration_seconds_bucket{namespace=\\"$namespace\\",service=\\"$controllers\\"}[$__rate_interval])))",\n         "legendFormat": ')
        out.append(str(to_json('{{controller}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 32,\n       "title": "What is done?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 16,\n        "y": 77,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "ops",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum by (kind, outcome) (rate(roost_controllers_actions_total{namespace=\\"$namespace\\",service=\\"$controllers\\"}[$__rate_interval]))",\n         "legendFormat": ')
        out.append(str(to_json('{{kind}} {{outcome}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 33,\n       "title": "What fails?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 0,\n        "y": 85,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "ops",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum by (controller) (rate(roost_controllers_plan_failures_total{namespace=\\"$namespace\\",service=\\"$controllers\\"}[$__rate_interval]))",\n         "legendFormat": ')
        out.append(str(to_json('plans of {{controller}}')))
        out.append('\n        },\n        {\n         "refId": "B",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum by (kind) (rate(roost_controllers_watch_errors_total{namespace=\\"$namespace\\",service=\\"$controllers\\"}[$__rate_interval]))",\n         "legendFormat": ')
        out.append(str(to_json("controllers' watch of {{kind}}")))
        out.append('\n        },\n        {\n         "refId": "C",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum by (kind) (rate(roost_webhook_watch_errors_total{namespace=\\"$namespace\\",service=\\"$webhook\\"}[$__rate_interval]))",\n         "legendFormat": ')
        out.append(str(to_json("webhook's watch of {{kind}}")))
        out.append('\n        },\n        {\n         "refId": "D",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum(rate(roost_webhook_policy_reload_failures_total{namespace=\\"$namespace\\",service=\\"$webhook\\"}[$__rate_interval]))",\n         "legendFormat": "policies refused"\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 34,\n       "title": "How much is asked of the API server?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 8,\n        "y": 85,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "ops",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "sum by (verb) (rate(roost_controllers_api_requests_total{namespace=\\"$namespace\\",service=\\"$controllers\\"}[$__rate_interval]))",\n         "legendFormat": ')
        out.append(str(to_json('{{verb}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 35,\n       "title": "When do certificates end?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 16,\n        "y": 85,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "s",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "min by (kind) (roost_webhook_certificate_expiry_timestamp_seconds{namespace=\\"$namespace\\",service=\\"$webhook\\"}) - time()",\n         "legendFormat": ')
        out.append(str(to_json('{{kind}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 36,\n       "title": "How much memory is used?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 0,\n        "y": 93,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "bytes",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "process_resident_memory_bytes{namespace=\\"$namespace\\",service=~\\"$webhook|$controllers|$recorder\\"}",\n         "legendFormat": ')
        out.append(str(to_json('{{pod}}')))
        out.append('\n        }\n       ]\n      },\n      {\n       "type": "timeseries",\n       "id": 37,\n       "title": "How much processor time is used?",\n       "datasource": {\n        "type": "prometheus",\n        "uid": "$datasource"\n       },\n       "gridPos": {\n        "x": 8,\n        "y": 93,\n        "w": 8,\n        "h": 8\n       },\n       "fieldConfig": {\n        "defaults": {\n         "unit": "percentunit",\n         "min": 0\n        },\n        "overrides": []\n       },\n       "options": {\n        "tooltip": {\n         "mode": "multi"\n        },\n        "legend": {\n         "displayMode": "list",\n         "placement": "bottom"\n        }\n       },\n       "targets": [\n        {\n         "refId": "A",\n         "datasource": {\n          "type": "prometheus",\n          "uid": "$datasource"\n         },\n         "expr": "rate(process_cpu_seconds_total{namespace=\\"$namespace\\",service=~\\"$webhook|$controllers|$recorder\\"}[$__rate_interval])",\n         "legendFormat": ')
        out.append(str(to_json('{{pod}}')))
        out.append('\n        }\n       ]\n      }\n     ]\n    }\n')
    return ''.join(out)


def render_shared_priorityclasses(given):
    out = []
    if ((read_key(given['values'], 'enabled') and read_key(read_key(given['values'], 'priorityClasses'), 'enabled')) and read_key(given['values'], 'clusterResources')):
        out.append('---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('user'), 'priority', {}), 2)))
        out.append('\nvalue: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'priorityClasses'), 'user'))))
        out.append('\n')
        if read_key(read_key(given['values'], 'priorityClasses'), 'globalDefault'):
            out.append('globalDefault: true\n')
        out.append('description: Pods of users; they take the seats that placeholders keep.\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('placeholder'), 'priority', {}), 2)))
        out.append('\nvalue: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'priorityClasses'), 'placeholder'))))
        out.append('\n# A seat waits for room; it never drives anybody out.\npreemptionPolicy: Never\ndescription: Spare seats, given up as soon as a user needs them.\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('puller'), 'priority', {}), 2)))
        out.append('\nvalue: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'priorityClasses'), 'puller'))))
        out.append("\ndescription: Pods that pull images; they take a seat's room on a full node, and give way to users.\n")
    return ''.join(out)


def render_webhook_certificate(given):
    out = []
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')) and (read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'mode') == 'certManager')):
        v_issuer = read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'issuerRef')
        out.append('apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('webhook'), 'webhook', {}), 2)))
        out.append('\nspec:\n  secretName: ')
        out.append(str(to_json((read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'secretName') or given['object_name']('webhook-tls')))))
        out.append('\n  duration: 168h\n  dnsNames:\n    - ')
        out.append(str(to_json((str(given['object_name']('webhook')) + str('.') + str(read_key(given['release'], 'namespace')) + str('.svc')))))
        out.append('\n    - ')
        out.append(str(to_json((str(given['object_name']('webhook')) + str('.') + str(read_key(given['release'], 'namespace')) + str('.svc.cluster.local')))))
        out.append('\n  privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Always}\n  usages: [digital signature, server auth]\n  issuerRef:\n')
        if read_key(v_issuer, 'name'):
            out.append('    name: ')
            out.append(str(to_json(read_key(v_issuer, 'name'))))
            out.append('\n    kind: ')
            out.append(str(to_json(read_key(v_issuer, 'kind'))))
            out.append('\n    group: ')
            out.append(str(to_json(read_key(v_issuer, 'group'))))
            out.append('\n')
        else:
            out.append('    name: ')
            out.append(str(to_json(given['object_name']('webhook'))))
            out.append('\n    kind: Issuer\n    group: cert-manager.io\n')
    return ''.join(out)


def render_webhook_clusterrole(given):
    out = []
    v_elsewhere = macro_some_class_elsewhere(given)
    if ((((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')) and read_key(read_key(given['values'], 'rbac'), 'create')) and read_key(given['values'], 'clusterResources')) and (read_key(read_key(given['values'], 'webhook'), 'readNodes') or (v_elsewhere != 'no;'))):
        out.append('apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('webhook'), 'webhook', {}), 2)))
        out.append('\nrules:\n')
        if read_key(read_key(given['values'], 'webhook'), 'readNodes'):
            out.append('  - apiGroups: [""]\n    resources: [nodes]\n    verbs: [get, list, watch]\n')
        if (v_elsewhere != 'no;'):
            out.append('  # A class selects namespaces by their labels, and its pods stand there; or its warm set counts pods of other hubs.\n  - apiGroups: [""]\n    resources: [namespaces, pods]\n    verbs: [get, list, watch]\n')
    return ''.join(out)


def render_webhook_clusterrolebinding(given):
    out = []
    v_elsewhere = macro_some_class_elsewhere(given)
    if ((((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')) and read_key(read_key(given['values'], 'rbac'), 'create')) and read_key(given['values'], 'clusterResources')) and (read_key(read_key(given['values'], 'webhook'), 'readNodes') or (v_elsewhere != 'no;'))):
        out.append('apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n')
        out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('webhook'), 'webhook', {}), 2)))
        out.append('\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: ')
        out.append(str(to_json(given['cluster_object_name']('webhook'))))
        out.append('\nsubjects:\n  - kind: ServiceAccount\n    name: ')
        out.append(str(to_json(given['object_name']('webhook'))))
        out.append('\n    namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
    return ''.join(out)


def render_webhook_configmap(given):
    out = []
    if (read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')):
        v_policy = {'version': 1, 'release': read_key(given['release'], 'name'), 'namespace': read_key(given['release'], 'namespace'), 'schedulerTarget': read_key(read_key(given['values'], 'scheduler'), 'target'), 'podClasses': read_key(given['values'], 'podClasses'), 'replaceSchedulers': read_key(given['values'], 'replaceSchedulers'), 'imageGate': {'mode': ((((read_key(read_key(given['values'], 'imageGate'), 'mode') == 'requireLabel') and (not (read_key(read_key(given['values'], 'controllers'), 'enabled') and read_key(read_key(given['values'], 'controllers'), 'replicas')))) and 'prefer') or read_key(read_key(given['values'], 'imageGate'), 'mode')), 'whenNoHolder': read_key(read_key(given['values'], 'imageGate'), 'whenNoHolder'), 'preferWeight': read_key(read_key(given['values'], 'imageGate'), 'preferWeight')}, 'placeholders': given['names'](read_key(given['values'], 'placeholders')), 'singleuser': {'image': read_key(read_key(given['values'], 'singleuser'), 'image'), 'profileList': read_key(read_key(given['values'], 'singleuser'), 'profileList'), 'initContainers': given['container_images'](read_key(read_key(given['values'], 'singleuser'), 'initContainers')), 'extraContainers': given['container_images'](read_key(read_key(given['values'], 'singleuser'), 'extraContainers')), 'networkTools': read_key(read_key(given['values'], 'singleuser'), 'networkTools')}, 'prePuller': {'pullProfileListImages': read_key(read_key(given['values'], 'prePuller'), 'pullProfileListImages'), 'extraImages': read_key(read_key(given['values'], 'prePuller'), 'extraImages')}, 'readNodes': read_key(read_key(given['values'], 'webhook'), 'readNodes'), 'sharedNamespaces': read_key(read_key(given['values'], 'sharedPools'), 'namespaceSelector'), 'leases': given['merge']({'scheduler': given['object_name']('scheduler')}, ((((read_key(read_key(given['values'], 'controllers'), 'enabled') and read_key(read_key(given['values'], 'controllers'), 'replicas')) and (read_key(read_key(given['values'], 'imageGate'), 'mode') == 'requireLabel')) and {'controllers': given['object_name']('controllers')}) or {}))}
        out.append('apiVersion: v1\nkind: ConfigMap\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('webhook'), 'webhook', {}), 2)))
        out.append('\ndata:\n  policy.json: |\n')
        out.append(str(indent(to_pretty_json(v_policy), 4)))
        out.append('\n')
    return ''.join(out)


def render_webhook_deployment(given):
    out = []
    v_core = given['core_pod'](read_key(given['values'], 'corePods'), read_key(given['values'], 'webhook'))
    if (read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')):
        out.append('apiVersion: apps/v1\nkind: Deployment\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('webhook'), 'webhook', {}), 2)))
        out.append('\nspec:\n  replicas: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'webhook'), 'replicas'))))
        out.append('\n  strategy:\n    type: RollingUpdate\n')
        if read_key(v_core, 'hostNetwork'):
            out.append("    # On the host's network two don't fit on one node: where there are as many nodes as replicas, an old one must go first.\n    rollingUpdate: {maxUnavailable: 1, maxSurge: 0}\n")
        else:
            out.append('    # A new replica serves before an old one goes.\n    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}\n')
        out.append('  selector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'webhook')))
        out.append('\n  template:\n    metadata:\n')
        if read_key(v_core, 'annotations'):
            out.append('      annotations: ')
            out.append(str(to_json(read_key(v_core, 'annotations'))))
            out.append('\n')
        out.append('      labels: ')
        out.append(str(macro_pod_labels(given, 'webhook', read_key(v_core, 'labels'))))
        out.append('\n    spec:\n      serviceAccountName: ')
        out.append(str(to_json(given['object_name']('webhook'))))
        out.append('\n      automountServiceAccountToken: true\n      enableServiceLinks: false\n')
        if read_key(v_core, 'priorityClassName'):
            out.append('      priorityClassName: ')
            out.append(str(to_json(read_key(v_core, 'priorityClassName'))))
            out.append('\n')
        if read_key(v_core, 'hostNetwork'):
            out.append('      hostNetwork: true\n      dnsPolicy: ClusterFirstWithHostNet\n')
        out.append('      # It drains by itself after SIGTERM.\n      terminationGracePeriodSeconds: ')
        out.append(str(plus(read_key(read_key(given['values'], 'webhook'), 'drainSeconds'), 20)))
        out.append('\n')
        if read_key(given['values'], 'imagePullSecrets'):
            out.append('      imagePullSecrets: ')
            out.append(str(macro_pull_secrets(given)))
            out.append('\n')
        if read_key(v_core, 'nodeSelector'):
            out.append('      nodeSelector: ')
            out.append(str(to_json(read_key(v_core, 'nodeSelector'))))
            out.append('\n')
        if read_key(v_core, 'tolerations'):
            out.append('      tolerations: ')
            out.append(str(to_json(read_key(v_core, 'tolerations'))))
            out.append('\n')
        if read_key(v_core, 'affinity'):
            out.append('      affinity: ')
            out.append(str(to_json(read_key(v_core, 'affinity'))))
            out.append('\n')
        out.append('      topologySpreadConstraints: ')
        out.append(str(macro_spread(given, 'webhook')))
        out.append('\n      securityContext: ')
        out.append(str(macro_pod_security(given)))
        out.append('\n      containers:\n        - name: webhook\n          image: ')
        out.append(str(to_json(given['own_image']())))
        out.append('\n          imagePullPolicy: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'image'), 'pullPolicy'))))
        out.append('\n          command:\n            - roost\n            - webhook\n            - --policy=/etc/roost/policy/policy.json\n            - ')
        out.append(str(to_json((str('--release=') + str(read_key(given['release'], 'name'))))))
        out.append('\n            - ')
        out.append(str(to_json((str('--namespace=') + str(read_key(given['release'], 'namespace'))))))
        out.append('\n            - ')
        out.append(str(to_json((str('--port=') + str(to_int(read_key(read_key(given['values'], 'webhook'), 'port')))))))
        out.append('\n            - ')
        out.append(str(to_json((str('--metrics-port=') + str(to_int(read_key(read_key(given['values'], 'webhook'), 'metricsPort')))))))
        out.append('\n            - ')
        out.append(str(to_json((str('--log-level=') + str(read_key(v_core, 'logLevel'))))))
        out.append('\n            - ')
        out.append(str(to_json((str('--drain-seconds=') + str(to_int(read_key(read_key(given['values'], 'webhook'), 'drainSeconds')))))))
        out.append('\n            - --certificate-folder=/etc/roost/certificate\n')
        if (read_key(read_key(read_key(given['values'], 'webhook'), 'clientCA'), 'configMapName') or read_key(read_key(read_key(given['values'], 'webhook'), 'clientCA'), 'secretName')):
            out.append('            - --client-ca=/etc/roost/client-ca/ca.crt\n')
            if read_key(read_key(read_key(given['values'], 'webhook'), 'clientCA'), 'commonName'):
                out.append('            - ')
                out.append(str(to_json((str('--client-name=') + str(read_key(read_key(read_key(given['values'], 'webhook'), 'clientCA'), 'commonName'))))))
                out.append('\n')
        if read_key(v_core, 'extraEnv'):
            out.append('          env: ')
            out.append(str(to_json(read_key(v_core, 'extraEnv'))))
            out.append('\n')
        out.append('          ports:\n            - name: https\n              containerPort: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'webhook'), 'port'))))
        out.append('\n            - name: metrics\n              containerPort: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'webhook'), 'metricsPort'))))
        out.append('\n          # A node that has no time must not kill it for starting slowly, again and again.\n          startupProbe:\n            httpGet: {path: /livez, port: metrics}\n            periodSeconds: 2\n            failureThreshold: 90\n          livenessProbe:\n            httpGet: {path: /livez, port: metrics}\n            failureThreshold: 3\n          readinessProbe:\n            httpGet: {path: /readyz, port: metrics}\n            periodSeconds: 5\n            failureThreshold: 2\n')
        if (read_key(read_key(read_key(given['values'], 'webhook'), 'resources'), 'requests') or read_key(read_key(read_key(given['values'], 'webhook'), 'resources'), 'limits')):
            out.append('          resources:\n')
            if read_key(read_key(read_key(given['values'], 'webhook'), 'resources'), 'requests'):
                out.append('            requests: ')
                out.append(str(to_json(read_key(read_key(read_key(given['values'], 'webhook'), 'resources'), 'requests'))))
                out.append('\n')
            if read_key(read_key(read_key(given['values'], 'webhook'), 'resources'), 'limits'):
                out.append('            limits: ')
                out.append(str(to_json(read_key(read_key(read_key(given['values'], 'webhook'), 'resources'), 'limits'))))
                out.append('\n')
        out.append('          securityContext: ')
        out.append(str(macro_container_security(given)))
        out.append('\n          volumeMounts:\n            # A folder, not a file: the kubelet updates a mounted folder.\n            - name: policy\n              mountPath: /etc/roost/policy\n              readOnly: true\n            - name: certificate\n              mountPath: /etc/roost/certificate\n              readOnly: true\n')
        if (read_key(read_key(read_key(given['values'], 'webhook'), 'clientCA'), 'configMapName') or read_key(read_key(read_key(given['values'], 'webhook'), 'clientCA'), 'secretName')):
            out.append('            - name: client-ca\n              mountPath: /etc/roost/client-ca\n              readOnly: true\n')
        out.append('            - name: tmp\n              mountPath: /tmp\n      volumes:\n        - name: policy\n          configMap:\n            name: ')
        out.append(str(to_json(given['object_name']('webhook'))))
        out.append('\n        - name: certificate\n          secret:\n')
        if (read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'mode') == 'self'):
            out.append('            secretName: ')
            out.append(str(to_json((read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'secretName') or given['object_name']('webhook-leaf')))))
            out.append("\n            # The controllers' leader makes it: until then the webhook runs, and isn't ready.\n            optional: true\n")
        else:
            out.append('            secretName: ')
            out.append(str(to_json((read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'secretName') or given['object_name']('webhook-tls')))))
            out.append('\n')
        if read_key(read_key(read_key(given['values'], 'webhook'), 'clientCA'), 'configMapName'):
            out.append('        - name: client-ca\n          configMap:\n            name: ')
            out.append(str(to_json(read_key(read_key(read_key(given['values'], 'webhook'), 'clientCA'), 'configMapName'))))
            out.append('\n')
        elif read_key(read_key(read_key(given['values'], 'webhook'), 'clientCA'), 'secretName'):
            out.append('        - name: client-ca\n          secret:\n            secretName: ')
            out.append(str(to_json(read_key(read_key(read_key(given['values'], 'webhook'), 'clientCA'), 'secretName'))))
            out.append('\n            items: [{key: ca.crt, path: ca.crt}]\n')
        out.append('        - name: tmp\n          emptyDir: {medium: Memory, sizeLimit: 16Mi}\n')
    return ''.join(out)


def render_webhook_issuer(given):
    out = []
    if (((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')) and (read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'mode') == 'certManager')) and (not read_key(read_key(read_key(read_key(given['values'], 'webhook'), 'certificates'), 'issuerRef'), 'name'))):
        out.append('apiVersion: cert-manager.io/v1\nkind: Issuer\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('webhook'), 'webhook', {}), 2)))
        out.append('\nspec:\n  selfSigned: {}\n')
    return ''.join(out)


def render_webhook_mutatingwebhookconfiguration(given):
    out = []
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')) and read_key(given['values'], 'clusterResources')):
        v_certificates = read_key(read_key(given['values'], 'webhook'), 'certificates')
        out.append('apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata:\n')
        if (read_key(v_certificates, 'mode') == 'certManager'):
            out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('webhook'), 'webhook', {'cert-manager.io/inject-ca-from': (str(read_key(given['release'], 'namespace')) + str('/') + str(given['object_name']('webhook')))}), 2)))
            out.append('\n')
        else:
            out.append(str(indent(macro_cluster_metadata(given, given['cluster_object_name']('webhook'), 'webhook', {}), 2)))
            out.append('\n')
        out.append('webhooks:\n')
        for v_name, v_class in each(items(read_key(given['values'], 'podClasses'))):
            out.append('  - name: ')
            out.append(str(to_json((str(v_name) + str('.roost.hub.jupyter.org')))))
            out.append('\n    admissionReviewVersions: [v1]\n    sideEffects: None\n    failurePolicy: ')
            out.append(str(to_json(read_key(read_key(given['values'], 'webhook'), 'failurePolicy'))))
            out.append('\n    timeoutSeconds: ')
            out.append(str(to_json(read_key(read_key(given['values'], 'webhook'), 'timeoutSeconds'))))
            out.append("\n    matchPolicy: Equivalent\n    # What another webhook changes may change a pod's place; patching twice is patching once.\n    reinvocationPolicy: IfNeeded\n    clientConfig:\n")
            if read_key(read_key(given['values'], 'webhook'), 'url'):
                out.append('      url: ')
                out.append(str(to_json(read_key(read_key(given['values'], 'webhook'), 'url'))))
                out.append('\n')
            else:
                out.append('      service:\n        name: ')
                out.append(str(to_json(given['object_name']('webhook'))))
                out.append('\n        namespace: ')
                out.append(str(to_json(read_key(given['release'], 'namespace'))))
                out.append('\n        path: /mutate\n        port: 443\n')
            if ((read_key(v_certificates, 'mode') == 'secret') and read_key(v_certificates, 'caBundle')):
                out.append('      caBundle: ')
                out.append(str(to_json(read_key(v_certificates, 'caBundle'))))
                out.append('\n')
            out.append('    rules:\n      - apiGroups: [""]\n        apiVersions: [v1]\n        operations: [CREATE]\n        resources: [pods]\n        scope: Namespaced\n    objectSelector:\n      matchLabels: ')
            out.append(str(to_json(read_key(read_key(v_class, 'match'), 'labels'))))
            out.append('\n    namespaceSelector:\n')
            if (read_key(read_key(v_class, 'match'), 'namespaceSelector') is None):
                out.append('      matchLabels: ')
                out.append(str(to_json({'kubernetes.io/metadata.name': read_key(given['release'], 'namespace')})))
                out.append('\n')
            else:
                if read_key(read_key(read_key(v_class, 'match'), 'namespaceSelector'), 'matchLabels'):
                    out.append('      matchLabels: ')
                    out.append(str(to_json(read_key(read_key(read_key(v_class, 'match'), 'namespaceSelector'), 'matchLabels'))))
                    out.append('\n')
                out.append('      matchExpressions:\n        - {key: ')
                out.append(str(to_json('kubernetes.io/metadata.name')))
                out.append(', operator: NotIn, values: [kube-system]}\n')
                for v_expression in each(read_key(read_key(read_key(v_class, 'match'), 'namespaceSelector'), 'matchExpressions')):
                    out.append('        - ')
                    out.append(str(to_json(v_expression)))
                    out.append('\n')
            out.append('    matchConditions:\n      - name: not-bound-yet\n        expression: \'!has(object.spec.nodeName) || object.spec.nodeName == ""\'\n      - name: no-mirror-pod\n        expression: \'!has(object.metadata.annotations) || !("kubernetes.io/config.mirror" in object.metadata.annotations)\'\n      - name: not-opted-out\n        expression: ')
            out.append(str(to_json((str("!has(object.metadata.annotations) || !('") + str('roost.hub.jupyter.org/opt-out') + str("' in object.metadata.annotations) || object.metadata.annotations['") + str('roost.hub.jupyter.org/opt-out') + str("'] != 'true'")))))
            out.append('\n      # Else a webhook that is down could keep itself from coming back.\n      - name: none-of-roosts-own-programs\n        expression: \'!has(object.metadata.labels) || !("app.kubernetes.io/part-of" in object.metadata.labels) || object.metadata.labels["app.kubernetes.io/part-of"] != "roost" || !("app.kubernetes.io/component" in object.metadata.labels) || object.metadata.labels["app.kubernetes.io/component"] == "placeholder"\'\n')
    return ''.join(out)


def render_webhook_networkpolicy(given):
    out = []
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')) and read_key(read_key(given['values'], 'networkPolicy'), 'enabled')):
        out.append('apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('webhook'), 'webhook', {}), 2)))
        out.append('\nspec:\n  podSelector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'webhook')))
        out.append("\n  policyTypes: [Ingress]\n  ingress:\n    # The API server's address is known to nobody beforehand.\n    - ports:\n        - {protocol: TCP, port: ")
        out.append(str(to_json(read_key(read_key(given['values'], 'webhook'), 'port'))))
        out.append(' }\n')
        if read_key(read_key(read_key(given['values'], 'networkPolicy'), 'ingress'), 'webhookReviews'):
            out.append('      from: ')
            out.append(str(to_json(read_key(read_key(read_key(given['values'], 'networkPolicy'), 'ingress'), 'webhookReviews'))))
            out.append('\n')
        out.append('    - ports:\n        - {protocol: TCP, port: ')
        out.append(str(to_json(read_key(read_key(given['values'], 'webhook'), 'metricsPort'))))
        out.append(' }\n')
        if read_key(read_key(read_key(given['values'], 'networkPolicy'), 'ingress'), 'webhookMetrics'):
            out.append('      from: ')
            out.append(str(to_json(read_key(read_key(read_key(given['values'], 'networkPolicy'), 'ingress'), 'webhookMetrics'))))
            out.append('\n')
    return ''.join(out)


def render_webhook_poddisruptionbudget(given):
    out = []
    v_core = given['core_pod'](read_key(given['values'], 'corePods'), read_key(given['values'], 'webhook'))
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')) and read_key(read_key(v_core, 'pdb'), 'enabled')):
        out.append('apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('webhook'), 'webhook', {}), 2)))
        out.append('\nspec:\n  maxUnavailable: ')
        out.append(str(to_json(read_key(read_key(v_core, 'pdb'), 'maxUnavailable'))))
        out.append("\n  # A replica that doesn't work guards nothing: never let it hold up a drain.\n  unhealthyPodEvictionPolicy: AlwaysAllow\n  selector:\n    matchLabels: ")
        out.append(str(macro_selector(given, 'webhook')))
        out.append('\n')
    return ''.join(out)


def render_webhook_prometheusrule(given):
    out = []
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')) and read_key(read_key(read_key(given['values'], 'monitoring'), 'prometheusRule'), 'enabled')):
        v_of_scheduler = (str('{namespace="') + str(read_key(given['release'], 'namespace')) + str('",service="') + str(given['object_name']('webhook')) + str('",part="scheduler"}'))
        v_series = (str('{namespace="') + str(read_key(given['release'], 'namespace')) + str('",service="') + str(given['object_name']('webhook')) + str('"}'))
        out.append('apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: ')
        out.append(str(to_json(given['object_name']('webhook'))))
        out.append('\n  namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
        if read_key(given['values'], 'commonAnnotations'):
            out.append('  annotations: ')
            out.append(str(to_json(read_key(given['values'], 'commonAnnotations'))))
            out.append('\n')
        out.append('  labels: ')
        out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': 'webhook', 'app.kubernetes.io/managed-by': 'roost', 'app.kubernetes.io/part-of': 'roost'}, read_key(read_key(read_key(given['values'], 'monitoring'), 'prometheusRule'), 'labels')))))
        out.append('\nspec:\n  groups:\n    - name: ')
        out.append(str(to_json((str(given['object_name']('webhook')) + str('.') + str(read_key(given['release'], 'namespace'))))))
        out.append('\n      rules:\n        - alert: RoostCertificateNearExpiry\n          # A leaf of a week is renewed at two thirds of its life: with a day left, something is wrong.\n          expr: ')
        out.append(str(to_json((str('min by (kind) (roost_webhook_certificate_expiry_timestamp_seconds') + str(v_series) + str(') - time() < 86400')))))
        out.append('\n          for: 5m\n          labels: {severity: critical}\n          annotations:\n            summary: ')
        out.append(str(to_json("Roost's {{ $labels.kind }} certificate nears its end and was not renewed.")))
        out.append('\n        - alert: RoostPodsUnplaced\n          expr: ')
        out.append(str(to_json((str('max by (class) (roost_webhook_unplaced_pods') + str(v_series) + str(') > 0')))))
        out.append('\n          for: 15m\n          labels: {severity: warning}\n          annotations:\n            summary: ')
        out.append(str(to_json('{{ $value }} pods of class {{ $labels.class }} came through without being placed, are older than Roost, or name their node themselves.')))
        out.append('\n        - alert: RoostAdmissionFailedOpen\n          # Said by the API server itself, so it also shows when no replica of the webhook is there.\n          expr: \'sum by (name) (increase(apiserver_admission_webhook_fail_open_count{name=~".+[.]roost[.]hub[.]jupyter[.]org"}[10m])) > 0\'\n          for: 5m\n          labels: {severity: warning}\n          annotations:\n            summary: ')
        out.append(str(to_json('The API server could not reach {{ $labels.name }} and created pods without it.')))
        out.append('\n')
        if (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy'):
            out.append('        - alert: RoostSchedulerAway\n          # Every replica of the webhook must miss it: one alone may only be new.\n          expr: ')
            out.append(str(to_json((str('min(roost_webhook_part_away') + str(v_of_scheduler) + str(') > 0')))))
            out.append("\n          for: 1m\n          labels: {severity: critical}\n          annotations:\n            summary: Nobody renews the Lease of Roost's scheduler, so new pods are left to the cluster's own scheduler.\n        - alert: RoostPodsWaitForScheduler\n          expr: ")
            out.append(str(to_json((str('max by (class) (roost_webhook_pods_waiting_for_scheduler') + str(v_series) + str(') > 0 and on () min(roost_webhook_part_away') + str(v_of_scheduler) + str(') > 0')))))
            out.append('\n          for: 2m\n          labels: {severity: critical}\n          annotations:\n            summary: ')
            out.append(str(to_json("{{ $value }} pods of class {{ $labels.class }} wait for Roost's scheduler, which is away; no other will take them.")))
            out.append('\n')
        out.append('        - alert: RoostPolicyRefused\n          expr: ')
        out.append(str(to_json((str('sum(increase(roost_webhook_policy_reload_failures_total') + str(v_series) + str('[15m])) > 0')))))
        out.append("\n          labels: {severity: warning}\n          annotations:\n            summary: Roost's webhook refused a changed policy and goes on with the last good one.\n")
    return ''.join(out)


def render_webhook_role(given):
    out = []
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')) and read_key(read_key(given['values'], 'rbac'), 'create')):
        out.append('apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('webhook'), 'webhook', {}), 2)))
        out.append('\nrules:\n  # Which nodes run builders, how many builds each has, which pods came through unplaced.\n  - apiGroups: [""]\n    resources: [pods]\n    verbs: [get, list, watch]\n')
        if (read_key(read_key(given['values'], 'scheduler'), 'target') == 'deploy'):
            out.append("  # Whether Roost's scheduler is at work: else pods keep the cluster's own.\n  - apiGroups: [coordination.k8s.io]\n    resources: [leases]\n    resourceNames: [")
            out.append(str(to_json(given['object_name']('scheduler'))))
            out.append(']\n    verbs: [get]\n')
        if ((read_key(read_key(given['values'], 'controllers'), 'enabled') and read_key(read_key(given['values'], 'controllers'), 'replicas')) and (read_key(read_key(given['values'], 'imageGate'), 'mode') == 'requireLabel')):
            out.append('  # Whether the controllers keep the labels of nodes true: else the image gate requires nothing.\n  - apiGroups: [coordination.k8s.io]\n    resources: [leases]\n    resourceNames: [')
            out.append(str(to_json(given['object_name']('controllers'))))
            out.append(']\n    verbs: [get]\n')
    return ''.join(out)


def render_webhook_rolebinding(given):
    out = []
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')) and read_key(read_key(given['values'], 'rbac'), 'create')):
        out.append('apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('webhook'), 'webhook', {}), 2)))
        out.append('\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: ')
        out.append(str(to_json(given['object_name']('webhook'))))
        out.append('\nsubjects:\n  - kind: ServiceAccount\n    name: ')
        out.append(str(to_json(given['object_name']('webhook'))))
        out.append('\n    namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
    return ''.join(out)


def render_webhook_service(given):
    out = []
    if (read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')):
        out.append('apiVersion: v1\nkind: Service\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('webhook'), 'webhook', {}), 2)))
        out.append('\nspec:\n  selector: ')
        out.append(str(macro_selector(given, 'webhook')))
        out.append('\n  ports:\n    - {name: https, port: 443, targetPort: https, protocol: TCP}\n    - {name: metrics, port: 8080, targetPort: metrics, protocol: TCP}\n')
    return ''.join(out)


def render_webhook_serviceaccount(given):
    out = []
    if (read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')):
        out.append('apiVersion: v1\nkind: ServiceAccount\nmetadata:\n')
        out.append(str(indent(macro_metadata(given, given['object_name']('webhook'), 'webhook', {}), 2)))
        out.append('\n# The webhook mounts its token itself, in its pod alone.\nautomountServiceAccountToken: false\n')
    return ''.join(out)


def render_webhook_servicemonitor(given):
    out = []
    if ((read_key(given['values'], 'enabled') and (read_key(read_key(given['values'], 'admission'), 'mode') == 'webhook')) and read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'enabled')):
        out.append('apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata:\n  name: ')
        out.append(str(to_json(given['object_name']('webhook'))))
        out.append('\n  namespace: ')
        out.append(str(to_json(read_key(given['release'], 'namespace'))))
        out.append('\n')
        if read_key(given['values'], 'commonAnnotations'):
            out.append('  annotations: ')
            out.append(str(to_json(read_key(given['values'], 'commonAnnotations'))))
            out.append('\n')
        out.append('  labels: ')
        out.append(str(to_json(given['merge'](read_key(given['values'], 'commonLabels'), {'app.kubernetes.io/name': 'roost', 'app.kubernetes.io/instance': read_key(given['release'], 'name'), 'app.kubernetes.io/component': 'webhook', 'app.kubernetes.io/managed-by': 'roost', 'app.kubernetes.io/part-of': 'roost'}, read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'labels')))))
        out.append('\nspec:\n  selector:\n    matchLabels: ')
        out.append(str(macro_selector(given, 'webhook')))
        out.append('\n  endpoints:\n    - port: metrics\n      path: /metrics\n      interval: ')
        out.append(str(to_json(read_key(read_key(read_key(given['values'], 'monitoring'), 'serviceMonitor'), 'interval'))))
        out.append('\n')
    return ''.join(out)


DEFAULTS = {'enabled': True,
 'global': {},
 'fullnameOverride': '',
 'clusterResources': True,
 'commonLabels': {},
 'commonAnnotations': {},
 'rbac': {'create': True},
 'imagePullSecrets': [],
 'image': {'name': 'quay.io/jupyterhub/roost', 'tag': '', 'digest': '', 'pullPolicy': 'IfNotPresent'},
 'corePods': {'logLevel': 'Info',
              'nodeSelector': {},
              'tolerations': [{'key': 'hub.jupyter.org/dedicated',
                               'operator': 'Equal',
                               'value': 'core',
                               'effect': 'NoSchedule'},
                              {'key': 'hub.jupyter.org_dedicated',
                               'operator': 'Equal',
                               'value': 'core',
                               'effect': 'NoSchedule'}],
              'affinity': {'nodeAffinity': {'preferredDuringSchedulingIgnoredDuringExecution': [{'weight': 100,
                                                                                                 'preference': {'matchExpressions': [{'key': 'hub.jupyter.org/node-purpose',
                                                                                                                                      'operator': 'In',
                                                                                                                                      'values': ['core']}]}}]}},
              'labels': {},
              'annotations': {},
              'priorityClassName': '',
              'hostNetwork': False,
              'extraEnv': [],
              'pdb': {'enabled': True, 'maxUnavailable': 1}},
 'scheduler': {'target': 'deploy',
               'replicas': 2,
               'logLevel': 2,
               'port': 10259,
               'image': {'name': 'registry.k8s.io/kube-scheduler',
                         'tag': '',
                         'tags': {'1.35': 'v1.35.4', '1.36': 'v1.36.3', '1.37': 'v1.37.2'},
                         'pullPolicy': 'IfNotPresent'},
               'featureGates': {'1.35': {'SchedulerAsyncPreemption': False, 'OpportunisticBatching': False}},
               'flushAfter': {'1.35': '30s'},
               'clientConnection': {'qps': 200, 'burst': 400},
               'leaderElection': {'leaseDuration': '15s', 'renewDeadline': '10s', 'retryPeriod': '2s'},
               'percentageOfNodesToScore': 100,
               'profiles': {'user': {'strategy': 'pack'},
                            'build': {'strategy': 'sticky'},
                            'placeholder': {'strategy': 'sticky'}},
               'strategies': {'pack': {'weights': {'NodeAffinity': 104060401,
                                                   'TaintToleration': 1030301,
                                                   'InterPodAffinity': 10201,
                                                   'PodTopologySpread': 10201,
                                                   'NodeResourcesFit': 101,
                                                   'ImageLocality': 1},
                                       'disabled': ['NodeResourcesBalancedAllocation'],
                                       'fit': {'type': 'MostAllocated',
                                               'resources': [{'name': 'cpu', 'weight': 1},
                                                             {'name': 'memory', 'weight': 1}]}},
                              'packTo': {'weights': {'NodeAffinity': 104060401,
                                                     'TaintToleration': 1030301,
                                                     'InterPodAffinity': 101,
                                                     'PodTopologySpread': 101,
                                                     'NodeResourcesFit': 10201,
                                                     'ImageLocality': 1},
                                         'disabled': ['NodeResourcesBalancedAllocation'],
                                         'fit': {'type': 'RequestedToCapacityRatio',
                                                 'resources': [{'name': 'cpu', 'weight': 1},
                                                               {'name': 'memory', 'weight': 1}],
                                                 'requestedToCapacityRatio': {'shape': [{'utilization': 0,
                                                                                         'score': 10},
                                                                                        {'utilization': 85,
                                                                                         'score': 10},
                                                                                        {'utilization': 100,
                                                                                         'score': 1}]}}},
                              'imageFirst': {'weights': {'NodeAffinity': 104060401,
                                                         'TaintToleration': 1030301,
                                                         'InterPodAffinity': 101,
                                                         'PodTopologySpread': 101,
                                                         'NodeResourcesFit': 1,
                                                         'ImageLocality': 10201},
                                             'disabled': ['NodeResourcesBalancedAllocation'],
                                             'fit': {'type': 'MostAllocated',
                                                     'resources': [{'name': 'cpu', 'weight': 1},
                                                                   {'name': 'memory', 'weight': 1}]}},
                              'sticky': {'weights': {'NodeAffinity': 104060401,
                                                     'TaintToleration': 1030301,
                                                     'InterPodAffinity': 10201,
                                                     'PodTopologySpread': 10201,
                                                     'NodeResourcesFit': 101,
                                                     'ImageLocality': 1},
                                         'disabled': ['NodeResourcesBalancedAllocation'],
                                         'fit': {'type': 'LeastAllocated',
                                                 'resources': [{'name': 'cpu', 'weight': 1},
                                                               {'name': 'memory', 'weight': 1}]}},
                              'spread': {'weights': {'NodeAffinity': 104060401,
                                                     'TaintToleration': 1030301,
                                                     'InterPodAffinity': 101,
                                                     'PodTopologySpread': 101,
                                                     'NodeResourcesFit': 10201,
                                                     'ImageLocality': 1},
                                         'disabled': ['NodeResourcesBalancedAllocation'],
                                         'fit': {'type': 'LeastAllocated',
                                                 'resources': [{'name': 'cpu', 'weight': 1},
                                                               {'name': 'memory', 'weight': 1}]}}},
               'resources': {'requests': {'cpu': '50m', 'memory': '128Mi'}, 'limits': {}}},
 'podClasses': {'user': {'match': {'labels': {'component': 'singleuser-server'}},
                         'profile': 'user',
                         'imageGate': True,
                         'join': {'user': 100},
                         'avoid': {},
                         'preferredNodeTerms': [{'weight': 100,
                                                 'preference': {'matchExpressions': [{'key': 'hub.jupyter.org/node-purpose',
                                                                                      'operator': 'In',
                                                                                      'values': ['user']}]}}],
                         'attract': False,
                         'resources': {}},
                'build': {'match': {'labels': {'component': 'binderhub-build'}},
                          'profile': 'build',
                          'imageGate': False,
                          'join': {},
                          'avoid': {},
                          'preferredNodeTerms': [],
                          'home': {'key': [{'annotation': 'binder-repo'}],
                                   'builders': {'labels': {'component': 'image-builder', 'app': 'binder'}},
                                   'matchBy': 'name',
                                   'weights': [100, 50, 25],
                                   'minLoad': 4,
                                   'maxLoad': 2},
                          'attract': False,
                          'resources': {'cpu': '100m', 'memory': '1Gi'}},
                'placeholder': {'match': {'labels': {'component': 'user-placeholder'}},
                                'profile': 'placeholder',
                                'imageGate': False,
                                'join': {},
                                'avoid': {'user': 1},
                                'preferredNodeTerms': [{'weight': 100,
                                                        'preference': {'matchExpressions': [{'key': 'hub.jupyter.org/node-purpose',
                                                                                             'operator': 'In',
                                                                                             'values': ['user']}]}}],
                                'attract': True,
                                'resources': {}}},
 'sharedPools': {},
 'replaceSchedulers': [],
 'imageGate': {'mode': 'requireLabel',
               'whenNoHolder': 'prefer',
               'preferWeight': 100,
               'openAfterSeconds': 10,
               'pullDeadlineSeconds': 600,
               'startupTaintDeadlineSeconds': 600,
               'nodeCondition': False,
               'nodeReadinessRule': False,
               'pullerPods': 'roost'},
 'singleuser': {'image': {'name': '', 'tag': '', 'pullSecrets': []},
                'initContainers': [],
                'extraContainers': [],
                'networkTools': {'image': {'name': '', 'tag': ''}},
                'profileList': [],
                'nodeSelector': {},
                'extraTolerations': [],
                'extraNodeAffinity': {'required': []},
                'extraResource': {'limits': {}, 'guarantees': {}},
                'cpu': {},
                'memory': {}},
 'prePuller': {'enabled': True,
               'method': 'auto',
               'pullProfileListImages': True,
               'extraImages': {},
               'resources': {'requests': {'cpu': '1m', 'memory': '1Mi'}, 'limits': {}},
               'nodeSelector': {},
               'tolerations': [{'key': 'hub.jupyter.org/dedicated',
                                'operator': 'Equal',
                                'value': 'user',
                                'effect': 'NoSchedule'},
                               {'key': 'hub.jupyter.org_dedicated',
                                'operator': 'Equal',
                                'value': 'user',
                                'effect': 'NoSchedule'}],
               'labels': {},
               'annotations': {}},
 'placeholders': [{'name': 'default', 'replicas': 3, 'countBy': 'pods', 'windows': []}],
 'placeholder': {'defaults': {'resources': {'requests': {'cpu': '50m', 'memory': '1Gi'}, 'limits': {}},
                              'nodeSelector': {},
                              'tolerations': [{'key': 'hub.jupyter.org/dedicated',
                                               'operator': 'Equal',
                                               'value': 'user',
                                               'effect': 'NoSchedule'},
                                              {'key': 'hub.jupyter.org_dedicated',
                                               'operator': 'Equal',
                                               'value': 'user',
                                               'effect': 'NoSchedule'}],
                              'requiredNodeTerms': [],
                              'labels': {},
                              'annotations': {}},
                 'image': {'name': 'registry.k8s.io/pause', 'tag': '3.10.1', 'pullPolicy': 'IfNotPresent'},
                 'podClass': 'placeholder',
                 'backend': 'statefulset'},
 'placeholderMover': {'enabled': True, 'evictionsPerMinute': 5},
 'popularImages': {'enabled': False, 'perNode': 5, 'diskHeadroomPercent': 70, 'nodeStatusMaxImages': 50},
 'priorityClasses': {'enabled': True, 'user': 0, 'globalDefault': False, 'placeholder': -10, 'puller': -5},
 'admission': {'mode': 'webhook'},
 'webhook': {'replicas': 2,
             'failurePolicy': 'Ignore',
             'timeoutSeconds': 2,
             'port': 8443,
             'metricsPort': 8080,
             'url': '',
             'certificates': {'mode': 'self',
                              'secretName': '',
                              'caBundle': '',
                              'issuerRef': {'name': '', 'kind': 'Issuer', 'group': 'cert-manager.io'}},
             'clientCA': {'configMapName': '', 'secretName': '', 'commonName': ''},
             'drainSeconds': 10,
             'resources': {'requests': {'cpu': '50m', 'memory': '128Mi'}, 'limits': {'memory': '256Mi'}},
             'readNodes': True},
 'controllers': {'enabled': True,
                 'replicas': 2,
                 'port': 8080,
                 'writesPerMinute': 600,
                 'cleanupOnUninstall': True,
                 'resources': {'requests': {'cpu': '50m', 'memory': '128Mi'}, 'limits': {'memory': '512Mi'}}},
 'recorder': {'enabled': False,
              'port': 8080,
              'retentionDays': 30,
              'database': {'existingSecret': '',
                           'persistence': {'enabled': True,
                                           'size': '5Gi',
                                           'storageClassName': '',
                                           'accessModes': ['ReadWriteOnce']}},
              'resources': {'requests': {'cpu': '50m', 'memory': '256Mi'}, 'limits': {'memory': '1Gi'}}},
 'networkPolicy': {'enabled': True,
                   'ingress': {'webhookReviews': [],
                               'webhookMetrics': [],
                               'controllers': [],
                               'scheduler': [],
                               'recorder': []}},
 'monitoring': {'serviceMonitor': {'enabled': False, 'labels': {}, 'interval': '30s'},
                'prometheusRule': {'enabled': False, 'labels': {}},
                'grafanaDashboard': {'enabled': False, 'labels': {}}}}

SCHEMA = {'$schema': 'http://json-schema.org/draft-07/schema#',
 'title': "Roost's values",
 'description': 'What chart/values.yaml may be changed to. Closed: an unknown key is a typing error. '
                '`required`: keys that a null must not delete. `$comment`: how to mend a fault.',
 'type': 'object',
 'additionalProperties': False,
 'required': ['admission',
              'clusterResources',
              'commonAnnotations',
              'commonLabels',
              'controllers',
              'corePods',
              'enabled',
              'fullnameOverride',
              'global',
              'image',
              'imageGate',
              'imagePullSecrets',
              'monitoring',
              'networkPolicy',
              'placeholder',
              'placeholderMover',
              'placeholders',
              'podClasses',
              'popularImages',
              'prePuller',
              'priorityClasses',
              'rbac',
              'recorder',
              'replaceSchedulers',
              'scheduler',
              'sharedPools',
              'singleuser',
              'webhook'],
 'properties': {'enabled': {'type': 'boolean'},
                'global': {'type': 'object'},
                'fullnameOverride': {'$ref': '#/definitions/optionalObjectName'},
                'clusterResources': {'type': 'boolean'},
                'commonLabels': {'$ref': '#/definitions/labels'},
                'commonAnnotations': {'$ref': '#/definitions/annotations'},
                'rbac': {'type': 'object',
                         'additionalProperties': False,
                         'required': ['create'],
                         'properties': {'create': {'type': 'boolean'}}},
                'imagePullSecrets': {'type': 'array',
                                     'items': {'$ref': '#/definitions/objectName'},
                                     'uniqueItems': True},
                'image': {'$ref': '#/definitions/image'},
                'corePods': {'type': 'object',
                             'additionalProperties': False,
                             'required': ['affinity',
                                          'annotations',
                                          'extraEnv',
                                          'hostNetwork',
                                          'labels',
                                          'logLevel',
                                          'nodeSelector',
                                          'pdb',
                                          'priorityClassName',
                                          'tolerations'],
                             'properties': {'logLevel': {'type': 'string',
                                                         'enum': ['Info', 'Debug', 'Warning', 'Error']},
                                            'nodeSelector': {'$ref': '#/definitions/labels'},
                                            'tolerations': {'$ref': '#/definitions/tolerations'},
                                            'affinity': {'$ref': '#/definitions/cleanObject'},
                                            'labels': {'$ref': '#/definitions/labels'},
                                            'annotations': {'$ref': '#/definitions/annotations'},
                                            'priorityClassName': {'$ref': '#/definitions/optionalObjectName'},
                                            'hostNetwork': {'type': 'boolean'},
                                            'extraEnv': {'$ref': '#/definitions/extraEnv'},
                                            'pdb': {'$ref': '#/definitions/pdb'}}},
                'scheduler': {'type': 'object',
                              'additionalProperties': False,
                              'required': ['clientConnection',
                                           'featureGates',
                                           'flushAfter',
                                           'image',
                                           'leaderElection',
                                           'logLevel',
                                           'percentageOfNodesToScore',
                                           'port',
                                           'profiles',
                                           'replicas',
                                           'resources',
                                           'strategies',
                                           'target'],
                              'properties': {'target': {'type': 'string', 'enum': ['deploy', 'none']},
                                             'replicas': {'type': 'integer', 'minimum': 0, 'maximum': 10},
                                             'logLevel': {'type': 'integer', 'minimum': 0, 'maximum': 10},
                                             'port': {'$ref': '#/definitions/port'},
                                             'image': {'type': 'object',
                                                       'additionalProperties': False,
                                                       'required': ['name', 'pullPolicy', 'tag', 'tags'],
                                                       'properties': {'name': {'$ref': '#/definitions/imageName'},
                                                                      'tag': {'$ref': '#/definitions/programTag'},
                                                                      'tags': {'type': 'object',
                                                                               'propertyNames': {'pattern': '^1\\.[0-9]{1,3}$',
                                                                                                 '$comment': 'Write '
                                                                                                             'a '
                                                                                                             'Kubernetes '
                                                                                                             'minor '
                                                                                                             'in '
                                                                                                             'quotes, '
                                                                                                             'like '
                                                                                                             '"1.37".'},
                                                                               'additionalProperties': {'$ref': '#/definitions/programTag'}},
                                                                      'pullPolicy': {'$ref': '#/definitions/pullPolicy'}}},
                                             'featureGates': {'type': 'object',
                                                              'propertyNames': {'pattern': '^1\\.[0-9]{1,3}$',
                                                                                '$comment': 'Write a '
                                                                                            'Kubernetes '
                                                                                            'minor in '
                                                                                            'quotes, like '
                                                                                            '"1.37".'},
                                                              'additionalProperties': {'type': 'object',
                                                                                       'propertyNames': {'pattern': '^[A-Z][A-Za-z0-9]{0,99}$',
                                                                                                         '$comment': 'Write '
                                                                                                                     'a '
                                                                                                                     'feature '
                                                                                                                     "gate's "
                                                                                                                     'name, '
                                                                                                                     'like '
                                                                                                                     'SchedulerAsyncPreemption.'},
                                                                                       'additionalProperties': {'type': 'boolean'}}},
                                             'flushAfter': {'type': 'object',
                                                            'propertyNames': {'pattern': '^1\\.[0-9]{1,3}$',
                                                                              '$comment': 'Write a '
                                                                                          'Kubernetes minor '
                                                                                          'in quotes, like '
                                                                                          '"1.37".'},
                                                            'additionalProperties': {'anyOf': [{'type': 'string',
                                                                                                'enum': ['']},
                                                                                               {'$ref': '#/definitions/goDuration'}]}},
                                             'clientConnection': {'type': 'object',
                                                                  'additionalProperties': False,
                                                                  'required': ['burst', 'qps'],
                                                                  'properties': {'qps': {'type': 'integer',
                                                                                         'minimum': 1,
                                                                                         'maximum': 10000},
                                                                                 'burst': {'type': 'integer',
                                                                                           'minimum': 1,
                                                                                           'maximum': 20000}}},
                                             'leaderElection': {'type': 'object',
                                                                'additionalProperties': False,
                                                                'required': ['leaseDuration',
                                                                             'renewDeadline',
                                                                             'retryPeriod'],
                                                                'properties': {'leaseDuration': {'$ref': '#/definitions/goDuration'},
                                                                               'renewDeadline': {'$ref': '#/definitions/goDuration'},
                                                                               'retryPeriod': {'$ref': '#/definitions/goDuration'}}},
                                             'percentageOfNodesToScore': {'type': 'integer',
                                                                          'minimum': 1,
                                                                          'maximum': 100,
                                                                          '$comment': '0 lets kube-scheduler '
                                                                                      'look at few nodes of '
                                                                                      'a large cluster.'},
                                             'profiles': {'type': 'object',
                                                          'propertyNames': {'$ref': '#/definitions/dnsLabel'},
                                                          'additionalProperties': {'$ref': '#/definitions/profile'}},
                                             'strategies': {'type': 'object',
                                                            'propertyNames': {'$ref': '#/definitions/dnsName'},
                                                            'additionalProperties': {'$ref': '#/definitions/strategy'}},
                                             'resources': {'$ref': '#/definitions/resources'},
                                             'nodeSelector': {'$ref': '#/definitions/labels'},
                                             'tolerations': {'$ref': '#/definitions/tolerations'},
                                             'affinity': {'$ref': '#/definitions/cleanObject'},
                                             'labels': {'$ref': '#/definitions/labels'},
                                             'annotations': {'$ref': '#/definitions/annotations'},
                                             'priorityClassName': {'$ref': '#/definitions/optionalObjectName'},
                                             'hostNetwork': {'type': 'boolean'},
                                             'extraEnv': {'$ref': '#/definitions/extraEnv'},
                                             'pdb': {'$ref': '#/definitions/pdbChange'}}},
                'podClasses': {'type': 'object',
                               'propertyNames': {'$ref': '#/definitions/dnsLabel'},
                               'additionalProperties': {'$ref': '#/definitions/podClass'}},
                'sharedPools': {'type': 'object',
                                'additionalProperties': False,
                                'properties': {'namespaceSelector': {'anyOf': [{'type': 'null'},
                                                                               {'$ref': '#/definitions/labelSelector'}]}}},
                'replaceSchedulers': {'type': 'array',
                                      'items': {'type': 'string',
                                                'pattern': '^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$',
                                                'maxLength': 253,
                                                '$comment': "Write a pod's schedulerName."},
                                      'uniqueItems': True},
                'imageGate': {'type': 'object',
                              'additionalProperties': False,
                              'required': ['mode',
                                           'nodeCondition',
                                           'nodeReadinessRule',
                                           'openAfterSeconds',
                                           'preferWeight',
                                           'pullDeadlineSeconds',
                                           'pullerPods',
                                           'startupTaintDeadlineSeconds',
                                           'whenNoHolder'],
                              'properties': {'mode': {'type': 'string',
                                                      'enum': ['requireLabel',
                                                               'prefer',
                                                               'startupTaint',
                                                               'off'],
                                                      '$comment': 'A bare `off` is false in YAML: write '
                                                                  '"off".'},
                                             'whenNoHolder': {'type': 'string', 'enum': ['prefer', 'wait']},
                                             'preferWeight': {'type': 'integer',
                                                              'minimum': 1,
                                                              'maximum': 100},
                                             'openAfterSeconds': {'type': 'integer',
                                                                  'minimum': 0,
                                                                  'maximum': 86400},
                                             'pullDeadlineSeconds': {'type': 'integer',
                                                                     'minimum': 1,
                                                                     'maximum': 86400},
                                             'startupTaintDeadlineSeconds': {'type': 'integer',
                                                                             'minimum': 1,
                                                                             'maximum': 86400},
                                             'nodeCondition': {'type': 'boolean'},
                                             'nodeReadinessRule': {'type': 'boolean'},
                                             'pullerPods': {'type': 'string',
                                                            'enum': ['roost', 'zeroToJupyterHub']}}},
                'singleuser': {'type': 'object',
                               'additionalProperties': False,
                               'required': ['cpu',
                                            'extraContainers',
                                            'extraNodeAffinity',
                                            'extraResource',
                                            'extraTolerations',
                                            'image',
                                            'initContainers',
                                            'memory',
                                            'networkTools',
                                            'nodeSelector',
                                            'profileList'],
                               'properties': {'image': {'type': 'object',
                                                        'additionalProperties': False,
                                                        'required': ['name', 'pullSecrets', 'tag'],
                                                        'properties': {'name': {'$ref': '#/definitions/optionalImageName'},
                                                                       'tag': {'$ref': '#/definitions/imageTag'},
                                                                       'pullSecrets': {'type': 'array',
                                                                                       'items': {'$ref': '#/definitions/objectName'},
                                                                                       'uniqueItems': True}}},
                                              'initContainers': {'type': 'array',
                                                                 'items': {'$ref': '#/definitions/cleanObject'}},
                                              'extraContainers': {'type': 'array',
                                                                  'items': {'$ref': '#/definitions/cleanObject'}},
                                              'networkTools': {'type': 'object',
                                                               'additionalProperties': False,
                                                               'required': ['image'],
                                                               'properties': {'image': {'type': 'object',
                                                                                        'additionalProperties': False,
                                                                                        'required': ['name',
                                                                                                     'tag'],
                                                                                        'properties': {'name': {'$ref': '#/definitions/optionalImageName'},
                                                                                                       'tag': {'$ref': '#/definitions/imageTag'}}}}},
                                              'extraTolerations': {'$ref': '#/definitions/tolerations'},
                                              'extraNodeAffinity': {'type': 'object',
                                                                    'additionalProperties': False,
                                                                    'required': ['required'],
                                                                    'properties': {'required': {'type': 'array',
                                                                                                'items': {'$ref': '#/definitions/nodeTerm'}}}},
                                              'extraResource': {'type': 'object',
                                                                'additionalProperties': False,
                                                                'required': ['guarantees', 'limits'],
                                                                'properties': {'limits': {'$ref': '#/definitions/quantities'},
                                                                               'guarantees': {'$ref': '#/definitions/quantities'}}},
                                              'profileList': {'type': 'array',
                                                              'items': {'$ref': '#/definitions/cleanObject'}},
                                              'nodeSelector': {'$ref': '#/definitions/labels'},
                                              'cpu': {'type': 'object',
                                                      'additionalProperties': False,
                                                      'properties': {'guarantee': {'$ref': '#/definitions/amount'},
                                                                     'limit': {'$ref': '#/definitions/amount'}}},
                                              'memory': {'type': 'object',
                                                         'additionalProperties': False,
                                                         'properties': {'guarantee': {'$ref': '#/definitions/amount'},
                                                                        'limit': {'$ref': '#/definitions/amount'}}}}},
                'prePuller': {'type': 'object',
                              'additionalProperties': False,
                              'required': ['annotations',
                                           'enabled',
                                           'extraImages',
                                           'labels',
                                           'method',
                                           'nodeSelector',
                                           'pullProfileListImages',
                                           'resources',
                                           'tolerations'],
                              'properties': {'enabled': {'type': 'boolean'},
                                             'method': {'type': 'string',
                                                        'enum': ['auto', 'imageVolume', 'noop']},
                                             'resources': {'$ref': '#/definitions/resources'},
                                             'nodeSelector': {'$ref': '#/definitions/labels'},
                                             'tolerations': {'$ref': '#/definitions/tolerations'},
                                             'labels': {'$ref': '#/definitions/labels'},
                                             'annotations': {'$ref': '#/definitions/annotations'},
                                             'pullProfileListImages': {'type': 'boolean'},
                                             'extraImages': {'type': 'object',
                                                             'propertyNames': {'pattern': '^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\ufffe\uffff]*$'},
                                                             'additionalProperties': {'type': 'object',
                                                                                      'additionalProperties': False,
                                                                                      'required': ['name'],
                                                                                      'properties': {'name': {'$ref': '#/definitions/imageName'},
                                                                                                     'tag': {'$ref': '#/definitions/imageTag'}}}}}},
                'placeholders': {'type': 'array', 'items': {'$ref': '#/definitions/placeholderSet'}},
                'placeholder': {'type': 'object',
                                'additionalProperties': False,
                                'required': ['backend', 'defaults', 'image', 'podClass'],
                                'properties': {'defaults': {'type': 'object',
                                                            'additionalProperties': False,
                                                            'required': ['annotations',
                                                                         'labels',
                                                                         'nodeSelector',
                                                                         'requiredNodeTerms',
                                                                         'resources',
                                                                         'tolerations'],
                                                            'properties': {'resources': {'$ref': '#/definitions/resources'},
                                                                           'nodeSelector': {'$ref': '#/definitions/labels'},
                                                                           'tolerations': {'$ref': '#/definitions/tolerations'},
                                                                           'requiredNodeTerms': {'type': 'array',
                                                                                                 'items': {'$ref': '#/definitions/nodeTerm'}},
                                                                           'labels': {'$ref': '#/definitions/labels'},
                                                                           'annotations': {'$ref': '#/definitions/annotations'}}},
                                               'image': {'type': 'object',
                                                         'additionalProperties': False,
                                                         'required': ['name', 'pullPolicy', 'tag'],
                                                         'properties': {'name': {'$ref': '#/definitions/imageName'},
                                                                        'tag': {'$ref': '#/definitions/programTag'},
                                                                        'pullPolicy': {'$ref': '#/definitions/pullPolicy'}}},
                                               'podClass': {'$ref': '#/definitions/dnsLabel'},
                                               'backend': {'type': 'string',
                                                           'enum': ['statefulset', 'capacityBuffer']}}},
                'placeholderMover': {'type': 'object',
                                     'additionalProperties': False,
                                     'required': ['enabled', 'evictionsPerMinute'],
                                     'properties': {'enabled': {'type': 'boolean'},
                                                    'evictionsPerMinute': {'type': 'integer',
                                                                           'minimum': 0,
                                                                           'maximum': 60,
                                                                           '$comment': 'More than one a '
                                                                                       'second for long has '
                                                                                       'broken nodes.'}}},
                'popularImages': {'type': 'object',
                                  'additionalProperties': False,
                                  'required': ['diskHeadroomPercent',
                                               'enabled',
                                               'nodeStatusMaxImages',
                                               'perNode'],
                                  'properties': {'enabled': {'type': 'boolean'},
                                                 'perNode': {'type': 'integer', 'minimum': 0, 'maximum': 50},
                                                 'diskHeadroomPercent': {'type': 'integer',
                                                                         'minimum': 1,
                                                                         'maximum': 84,
                                                                         '$comment': 'Stay below the '
                                                                                     "kubelet's "
                                                                                     'imageGCHighThresholdPercent, '
                                                                                     '85 unless set.'},
                                                 'nodeStatusMaxImages': {'type': 'integer',
                                                                         'minimum': -1,
                                                                         'maximum': 100000}}},
                'priorityClasses': {'type': 'object',
                                    'additionalProperties': False,
                                    'required': ['enabled', 'globalDefault', 'placeholder', 'puller', 'user'],
                                    'properties': {'enabled': {'type': 'boolean'},
                                                   'user': {'type': 'integer',
                                                            'minimum': -2147483648,
                                                            'maximum': 1000000000},
                                                   'globalDefault': {'type': 'boolean'},
                                                   'placeholder': {'type': 'integer',
                                                                   'minimum': -2147483648,
                                                                   'maximum': 1000000000},
                                                   'puller': {'type': 'integer',
                                                              'minimum': -2147483648,
                                                              'maximum': 1000000000}}},
                'admission': {'type': 'object',
                              'additionalProperties': False,
                              'required': ['mode'],
                              'properties': {'mode': {'type': 'string',
                                                      'enum': ['webhook', 'policy', 'none']}}},
                'webhook': {'type': 'object',
                            'additionalProperties': False,
                            'required': ['certificates',
                                         'clientCA',
                                         'drainSeconds',
                                         'failurePolicy',
                                         'metricsPort',
                                         'port',
                                         'readNodes',
                                         'replicas',
                                         'resources',
                                         'timeoutSeconds',
                                         'url'],
                            'properties': {'replicas': {'type': 'integer', 'minimum': 0, 'maximum': 100},
                                           'logLevel': {'type': 'string',
                                                        'enum': ['Info', 'Debug', 'Warning', 'Error']},
                                           'failurePolicy': {'type': 'string', 'enum': ['Ignore', 'Fail']},
                                           'timeoutSeconds': {'type': 'integer',
                                                              'minimum': 1,
                                                              'maximum': 30,
                                                              '$comment': 'The API server takes 1 to 30 '
                                                                          'seconds.'},
                                           'port': {'$ref': '#/definitions/port'},
                                           'metricsPort': {'$ref': '#/definitions/port'},
                                           'url': {'type': 'string',
                                                   'pattern': '^(https://[^\\x00-\\x20#?@]+)?$',
                                                   'maxLength': 2048,
                                                   '$comment': 'Write https://host:port/path.'},
                                           'clientCA': {'type': 'object',
                                                        'additionalProperties': False,
                                                        'required': ['commonName',
                                                                     'configMapName',
                                                                     'secretName'],
                                                        'properties': {'configMapName': {'$ref': '#/definitions/optionalObjectName'},
                                                                       'secretName': {'$ref': '#/definitions/optionalObjectName'},
                                                                       'commonName': {'title': 'a '
                                                                                               "certificate's "
                                                                                               'common name '
                                                                                               '(text)',
                                                                                      'type': 'string',
                                                                                      'pattern': '^[A-Za-z0-9:._ '
                                                                                                 '-]*$',
                                                                                      'maxLength': 64,
                                                                                      '$comment': 'Like '
                                                                                                  'kube-apiserver-to-webhooks.'}}},
                                           'certificates': {'type': 'object',
                                                            'additionalProperties': False,
                                                            'required': ['caBundle',
                                                                         'issuerRef',
                                                                         'mode',
                                                                         'secretName'],
                                                            'properties': {'mode': {'type': 'string',
                                                                                    'enum': ['self',
                                                                                             'certManager',
                                                                                             'secret']},
                                                                           'secretName': {'$ref': '#/definitions/optionalObjectName'},
                                                                           'caBundle': {'type': 'string',
                                                                                        'pattern': '^[A-Za-z0-9+/=\\n]*$',
                                                                                        '$comment': 'Write '
                                                                                                    'base64 '
                                                                                                    'of '
                                                                                                    'PEM.'},
                                                                           'issuerRef': {'type': 'object',
                                                                                         'additionalProperties': False,
                                                                                         'required': ['group',
                                                                                                      'kind',
                                                                                                      'name'],
                                                                                         'properties': {'name': {'$ref': '#/definitions/optionalObjectName'},
                                                                                                        'kind': {'type': 'string',
                                                                                                                 'enum': ['Issuer',
                                                                                                                          'ClusterIssuer']},
                                                                                                        'group': {'$ref': '#/definitions/objectName'}}}}},
                                           'drainSeconds': {'type': 'integer', 'minimum': 0, 'maximum': 3600},
                                           'resources': {'$ref': '#/definitions/resources'},
                                           'nodeSelector': {'$ref': '#/definitions/labels'},
                                           'tolerations': {'$ref': '#/definitions/tolerations'},
                                           'affinity': {'$ref': '#/definitions/cleanObject'},
                                           'labels': {'$ref': '#/definitions/labels'},
                                           'annotations': {'$ref': '#/definitions/annotations'},
                                           'priorityClassName': {'$ref': '#/definitions/optionalObjectName'},
                                           'hostNetwork': {'type': 'boolean'},
                                           'extraEnv': {'$ref': '#/definitions/extraEnv'},
                                           'pdb': {'$ref': '#/definitions/pdbChange'},
                                           'readNodes': {'type': 'boolean'}}},
                'controllers': {'type': 'object',
                                'additionalProperties': False,
                                'required': ['cleanupOnUninstall',
                                             'enabled',
                                             'port',
                                             'replicas',
                                             'resources',
                                             'writesPerMinute'],
                                'properties': {'enabled': {'type': 'boolean'},
                                               'replicas': {'type': 'integer', 'minimum': 0, 'maximum': 10},
                                               'logLevel': {'type': 'string',
                                                            'enum': ['Info', 'Debug', 'Warning', 'Error']},
                                               'port': {'$ref': '#/definitions/port'},
                                               'writesPerMinute': {'type': 'integer',
                                                                   'minimum': 1,
                                                                   'maximum': 60000,
                                                                   '$comment': 'To stop the controllers, set '
                                                                               'controllers.enabled to '
                                                                               'false.'},
                                               'cleanupOnUninstall': {'type': 'boolean'},
                                               'resources': {'$ref': '#/definitions/resources'},
                                               'nodeSelector': {'$ref': '#/definitions/labels'},
                                               'tolerations': {'$ref': '#/definitions/tolerations'},
                                               'affinity': {'$ref': '#/definitions/cleanObject'},
                                               'labels': {'$ref': '#/definitions/labels'},
                                               'annotations': {'$ref': '#/definitions/annotations'},
                                               'priorityClassName': {'$ref': '#/definitions/optionalObjectName'},
                                               'hostNetwork': {'type': 'boolean'},
                                               'extraEnv': {'$ref': '#/definitions/extraEnv'},
                                               'pdb': {'$ref': '#/definitions/pdbChange'}}},
                'recorder': {'type': 'object',
                             'additionalProperties': False,
                             'required': ['database', 'enabled', 'port', 'resources', 'retentionDays'],
                             'properties': {'enabled': {'type': 'boolean'},
                                            'logLevel': {'type': 'string',
                                                         'enum': ['Info', 'Debug', 'Warning', 'Error']},
                                            'port': {'$ref': '#/definitions/port'},
                                            'retentionDays': {'type': 'integer',
                                                              'minimum': 0,
                                                              'maximum': 36500},
                                            'database': {'type': 'object',
                                                         'additionalProperties': False,
                                                         'required': ['existingSecret', 'persistence'],
                                                         'properties': {'existingSecret': {'$ref': '#/definitions/optionalObjectName'},
                                                                        'persistence': {'type': 'object',
                                                                                        'additionalProperties': False,
                                                                                        'required': ['accessModes',
                                                                                                     'enabled',
                                                                                                     'size',
                                                                                                     'storageClassName'],
                                                                                        'properties': {'enabled': {'type': 'boolean'},
                                                                                                       'size': {'$ref': '#/definitions/quantity'},
                                                                                                       'storageClassName': {'$ref': '#/definitions/optionalObjectName'},
                                                                                                       'accessModes': {'type': 'array',
                                                                                                                       'items': {'type': 'string',
                                                                                                                                 'enum': ['ReadWriteOnce',
                                                                                                                                          'ReadWriteOncePod',
                                                                                                                                          'ReadWriteMany']},
                                                                                                                       'minItems': 1,
                                                                                                                       'uniqueItems': True}}}}},
                                            'resources': {'$ref': '#/definitions/resources'},
                                            'nodeSelector': {'$ref': '#/definitions/labels'},
                                            'tolerations': {'$ref': '#/definitions/tolerations'},
                                            'affinity': {'$ref': '#/definitions/cleanObject'},
                                            'labels': {'$ref': '#/definitions/labels'},
                                            'annotations': {'$ref': '#/definitions/annotations'},
                                            'priorityClassName': {'$ref': '#/definitions/optionalObjectName'},
                                            'hostNetwork': {'type': 'boolean'},
                                            'extraEnv': {'$ref': '#/definitions/extraEnv'}}},
                'networkPolicy': {'type': 'object',
                                  'additionalProperties': False,
                                  'required': ['enabled', 'ingress'],
                                  'properties': {'enabled': {'type': 'boolean'},
                                                 'ingress': {'type': 'object',
                                                             'additionalProperties': False,
                                                             'required': ['controllers',
                                                                          'recorder',
                                                                          'scheduler',
                                                                          'webhookMetrics',
                                                                          'webhookReviews'],
                                                             'properties': {'webhookReviews': {'$ref': '#/definitions/peers'},
                                                                            'webhookMetrics': {'$ref': '#/definitions/peers'},
                                                                            'controllers': {'$ref': '#/definitions/peers'},
                                                                            'scheduler': {'$ref': '#/definitions/peers'},
                                                                            'recorder': {'$ref': '#/definitions/peers'}}}}},
                'monitoring': {'type': 'object',
                               'additionalProperties': False,
                               'required': ['grafanaDashboard', 'prometheusRule', 'serviceMonitor'],
                               'properties': {'grafanaDashboard': {'type': 'object',
                                                                   'additionalProperties': False,
                                                                   'required': ['enabled', 'labels'],
                                                                   'properties': {'enabled': {'type': 'boolean'},
                                                                                  'labels': {'$ref': '#/definitions/labels'}}},
                                              'serviceMonitor': {'type': 'object',
                                                                 'additionalProperties': False,
                                                                 'required': ['enabled',
                                                                              'interval',
                                                                              'labels'],
                                                                 'properties': {'enabled': {'type': 'boolean'},
                                                                                'labels': {'$ref': '#/definitions/labels'},
                                                                                'interval': {'type': 'string',
                                                                                             'pattern': '^[0-9]{1,6}(ms|s|m|h)$',
                                                                                             '$comment': 'Write '
                                                                                                         'it '
                                                                                                         'like '
                                                                                                         '30s.'}}},
                                              'prometheusRule': {'type': 'object',
                                                                 'additionalProperties': False,
                                                                 'required': ['enabled', 'labels'],
                                                                 'properties': {'enabled': {'type': 'boolean'},
                                                                                'labels': {'$ref': '#/definitions/labels'}}}}}},
 'definitions': {'amount': {'title': 'a number, or text like 512M',
                            'anyOf': [{'type': 'null'},
                                      {'type': 'number', 'minimum': 0},
                                      {'type': 'string',
                                       'pattern': '^[0-9]+(\\.[0-9]+)?[KMGT]?$',
                                       'maxLength': 32,
                                       '$comment': 'Write it as zero-to-jupyterhub does: 0.5, 512M, 2G.'}],
                            '$comment': 'Write it as zero-to-jupyterhub does: 0.5, 512M, 2G.'},
                 'annotations': {'type': 'object',
                                 'propertyNames': {'$ref': '#/definitions/labelKey'},
                                 'additionalProperties': {'$ref': '#/definitions/text'},
                                 '$comment': 'Quote numbers and true/false.'},
                 'cidr': {'title': 'a block of addresses (text)',
                          'type': 'string',
                          'pattern': '^[0-9a-fA-F:.]+/[0-9]{1,3}$',
                          '$comment': 'Like 10.0.0.0/16 or fd00::/64.'},
                 'clean': {'pattern': '^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\ufffe\uffff]*$',
                           'items': {'$ref': '#/definitions/clean'},
                           'additionalProperties': {'$ref': '#/definitions/clean'},
                           'propertyNames': {'pattern': '^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\ufffe\uffff]*$'}},
                 'cleanObject': {'allOf': [{'type': 'object'}, {'$ref': '#/definitions/clean'}]},
                 'dnsLabel': {'title': 'a name',
                              'type': 'string',
                              'pattern': '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
                              'maxLength': 63,
                              '$comment': 'Use lower-case letters, digits and dashes, at most 63.'},
                 'dnsName': {'title': 'a name',
                             'type': 'string',
                             'pattern': '^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?$',
                             'maxLength': 63,
                             '$comment': 'Write the key of a strategy.'},
                 'extraEnv': {'type': 'array',
                              'items': {'allOf': [{'type': 'object',
                                                   'required': ['name'],
                                                   'properties': {'name': {'type': 'string'},
                                                                  'value': {'type': 'string',
                                                                            '$comment': 'Quote numbers and '
                                                                                        'true/false.'},
                                                                  'valueFrom': {'type': 'object'}},
                                                   'additionalProperties': False},
                                                  {'$ref': '#/definitions/clean'}]}},
                 'fit': {'type': 'object',
                         'additionalProperties': False,
                         'required': ['type'],
                         'properties': {'type': {'type': 'string',
                                                 'enum': ['LeastAllocated',
                                                          'MostAllocated',
                                                          'RequestedToCapacityRatio']},
                                        'resources': {'$ref': '#/definitions/resourceWeights'},
                                        'requestedToCapacityRatio': {'type': 'object',
                                                                     'additionalProperties': False,
                                                                     'required': ['shape'],
                                                                     'properties': {'shape': {'type': 'array',
                                                                                              'items': {'type': 'object',
                                                                                                        'additionalProperties': False,
                                                                                                        'required': ['score',
                                                                                                                     'utilization'],
                                                                                                        'properties': {'utilization': {'type': 'integer',
                                                                                                                                       'minimum': 0,
                                                                                                                                       'maximum': 100},
                                                                                                                       'score': {'type': 'integer',
                                                                                                                                 'minimum': 0,
                                                                                                                                 'maximum': 10}}},
                                                                                              'minItems': 1}}}}},
                 'goDuration': {'title': 'a duration',
                                'type': 'string',
                                'pattern': '^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$',
                                'maxLength': 32,
                                '$comment': 'Write it like 15s or 1m30s.'},
                 'home': {'type': ['object', 'null'],
                          'additionalProperties': False,
                          'required': ['builders', 'key', 'matchBy', 'maxLoad', 'minLoad', 'weights'],
                          'properties': {'key': {'type': 'array',
                                                 'items': {'$ref': '#/definitions/keySource'},
                                                 'minItems': 1},
                                         'builders': {'type': 'object',
                                                      'additionalProperties': False,
                                                      'properties': {'labels': {'$ref': '#/definitions/labels'}}},
                                         'matchBy': {'type': 'string', 'enum': ['name', 'hostname']},
                                         'weights': {'type': 'array',
                                                     'items': {'type': 'integer',
                                                               'minimum': 1,
                                                               'maximum': 100},
                                                     'minItems': 1,
                                                     'maxItems': 100},
                                         'minLoad': {'type': 'integer', 'minimum': 0, 'maximum': 1000000},
                                         'maxLoad': {'type': 'number', 'minimum': 0, 'maximum': 999999}}},
                 'image': {'type': 'object',
                           'additionalProperties': False,
                           'required': ['digest', 'name', 'pullPolicy', 'tag'],
                           'properties': {'name': {'$ref': '#/definitions/imageName'},
                                          'tag': {'$ref': '#/definitions/imageTag'},
                                          'digest': {'type': 'string',
                                                     'pattern': '^(sha256:[0-9a-f]{64})?$',
                                                     'maxLength': 71,
                                                     '$comment': 'Write sha256: and 64 hex digits.'},
                                          'pullPolicy': {'$ref': '#/definitions/pullPolicy'}}},
                 'imageName': {'title': "an image's name",
                               'type': 'string',
                               'pattern': '^[A-Za-z0-9]([A-Za-z0-9._:/-]*[A-Za-z0-9])?$',
                               'maxLength': 255,
                               '$comment': 'Write registry/repository without tag.'},
                 'imageTag': {'title': "an image's tag (text)",
                              'type': 'string',
                              'pattern': '^([A-Za-z0-9_][A-Za-z0-9._-]*)?$',
                              'maxLength': 128,
                              '$comment': 'Quote tags that look like numbers.'},
                 'programTag': {'title': "an image's tag, with or without its digest (text)",
                                'type': 'string',
                                'pattern': '^([A-Za-z0-9_][A-Za-z0-9._-]{0,127}(@sha256:[0-9a-f]{64})?)?$',
                                'maxLength': 200,
                                '$comment': 'Like v1.37.2 or v1.37.2@sha256:... with 64 hexadecimal digits. '
                                            'Quote tags that look like numbers.'},
                 'keySource': {'title': 'one place where the repository is named',
                               'type': 'object',
                               'additionalProperties': False,
                               'properties': {'annotation': {'$ref': '#/definitions/labelKey'},
                                              'label': {'$ref': '#/definitions/labelKey'},
                                              'env': {'type': 'string',
                                                      'pattern': '^[A-Za-z_][A-Za-z0-9_]*$',
                                                      'maxLength': 253,
                                                      '$comment': "Write the variable's name."},
                                              'image': {'type': 'string', 'enum': ['repository']}},
                               'minProperties': 1,
                               'maxProperties': 1,
                               '$comment': 'Write one of {annotation: NAME}, {label: NAME}, {env: NAME}, '
                                           '{image: repository}.'},
                 'labelExpression': {'type': 'object',
                                     'additionalProperties': False,
                                     'required': ['key', 'operator'],
                                     'properties': {'key': {'$ref': '#/definitions/labelKey'},
                                                    'operator': {'type': 'string',
                                                                 'enum': ['In',
                                                                          'NotIn',
                                                                          'Exists',
                                                                          'DoesNotExist']},
                                                    'values': {'type': 'array',
                                                               'items': {'$ref': '#/definitions/labelValue'}}}},
                 'labelKey': {'title': "a label's key",
                              'type': 'string',
                              'pattern': '^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$',
                              'maxLength': 317,
                              '$comment': 'Use [prefix/]name of letters, digits, dashes, dots and '
                                          'underscores.'},
                 'labelSelector': {'type': 'object',
                                   'additionalProperties': False,
                                   'properties': {'matchLabels': {'$ref': '#/definitions/labels'},
                                                  'matchExpressions': {'type': 'array',
                                                                       'items': {'$ref': '#/definitions/labelExpression'}}}},
                 'labelValue': {'title': "a label's value (text)",
                                'type': 'string',
                                'pattern': '^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$',
                                'maxLength': 63,
                                '$comment': 'Use at most 63 letters, digits, dashes, dots and underscores; '
                                            'quote numbers and true/false.'},
                 'labels': {'type': 'object',
                            'propertyNames': {'$ref': '#/definitions/labelKey'},
                            'additionalProperties': {'$ref': '#/definitions/labelValue'}},
                 'nodeExpression': {'type': 'object',
                                    'additionalProperties': False,
                                    'required': ['key', 'operator'],
                                    'properties': {'key': {'$ref': '#/definitions/labelKey'},
                                                   'operator': {'type': 'string',
                                                                'enum': ['In',
                                                                         'NotIn',
                                                                         'Exists',
                                                                         'DoesNotExist',
                                                                         'Gt',
                                                                         'Lt']},
                                                   'values': {'type': 'array',
                                                              'items': {'$ref': '#/definitions/labelValue'}}}},
                 'nodeField': {'type': 'object',
                               'additionalProperties': False,
                               'required': ['key', 'operator', 'values'],
                               'properties': {'key': {'type': 'string', 'enum': ['metadata.name']},
                                              'operator': {'type': 'string', 'enum': ['In', 'NotIn']},
                                              'values': {'type': 'array',
                                                         'items': {'$ref': '#/definitions/objectName'},
                                                         'minItems': 1,
                                                         'maxItems': 1}}},
                 'nodeTerm': {'type': 'object',
                              'additionalProperties': False,
                              'properties': {'matchExpressions': {'type': 'array',
                                                                  'items': {'$ref': '#/definitions/nodeExpression'}},
                                             'matchFields': {'type': 'array',
                                                             'items': {'$ref': '#/definitions/nodeField'}}},
                              'minProperties': 1},
                 'objectName': {'title': 'a Kubernetes name',
                                'type': 'string',
                                'pattern': '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
                                'maxLength': 253,
                                '$comment': 'Use lower-case letters, digits, dashes and dots.'},
                 'optionalDnsLabel': {'title': 'a name or nothing',
                                      'type': 'string',
                                      'pattern': '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$',
                                      'maxLength': 63,
                                      '$comment': 'Use lower-case letters, digits and dashes, at most 63.'},
                 'optionalImageName': {'title': "an image's name or nothing",
                                       'type': 'string',
                                       'pattern': '^([A-Za-z0-9]([A-Za-z0-9._:/-]*[A-Za-z0-9])?)?$',
                                       'maxLength': 255,
                                       '$comment': 'Write registry/repository without tag.'},
                 'optionalObjectName': {'title': 'a Kubernetes name or nothing',
                                        'type': 'string',
                                        'pattern': '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$',
                                        'maxLength': 253,
                                        '$comment': 'Use lower-case letters, digits, dashes and dots.'},
                 'maxUnavailable': {'anyOf': [{'type': 'integer', 'minimum': 0, 'maximum': 1000},
                                              {'type': 'string',
                                               'pattern': '^[0-9]{1,3}%$',
                                               '$comment': 'Write a number of pods or a share like 50%.'}],
                                    '$comment': 'Write a number of pods or a share like 50%.'},
                 'pdb': {'type': 'object',
                         'additionalProperties': False,
                         'required': ['enabled', 'maxUnavailable'],
                         'properties': {'enabled': {'type': 'boolean'},
                                        'maxUnavailable': {'$ref': '#/definitions/maxUnavailable'}}},
                 'pdbChange': {'type': 'object',
                               'additionalProperties': False,
                               'properties': {'enabled': {'type': 'boolean'},
                                              'maxUnavailable': {'$ref': '#/definitions/maxUnavailable'}}},
                 'peers': {'title': 'peers of a NetworkPolicy (list)',
                           'type': 'array',
                           'items': {'type': 'object',
                                     'additionalProperties': False,
                                     'minProperties': 1,
                                     'properties': {'podSelector': {'$ref': '#/definitions/labelSelector'},
                                                    'namespaceSelector': {'$ref': '#/definitions/labelSelector'},
                                                    'ipBlock': {'type': 'object',
                                                                'additionalProperties': False,
                                                                'required': ['cidr'],
                                                                'properties': {'cidr': {'$ref': '#/definitions/cidr'},
                                                                               'except': {'type': 'array',
                                                                                          'items': {'$ref': '#/definitions/cidr'}}}}}}},
                 'placeholderSet': {'type': 'object',
                                    'additionalProperties': False,
                                    'required': ['name', 'replicas'],
                                    'properties': {'name': {'$ref': '#/definitions/dnsLabel'},
                                                   'replicas': {'type': 'integer',
                                                                'minimum': 0,
                                                                'maximum': 100000,
                                                                '$comment': 'Write a number without quotes.'},
                                                   'countBy': {'type': 'string', 'enum': ['pods', 'nodes']},
                                                   'windows': {'type': 'array',
                                                               'items': {'$ref': '#/definitions/window'}},
                                                   'resources': {'$ref': '#/definitions/resources'},
                                                   'nodeSelector': {'$ref': '#/definitions/labels'},
                                                   'tolerations': {'$ref': '#/definitions/tolerations'},
                                                   'requiredNodeTerms': {'type': 'array',
                                                                         'items': {'$ref': '#/definitions/nodeTerm'}},
                                                   'labels': {'$ref': '#/definitions/labels'},
                                                   'annotations': {'$ref': '#/definitions/annotations'}}},
                 'pluginName': {'title': "a plugin's name",
                                'type': 'string',
                                'pattern': '^[A-Za-z][A-Za-z0-9._/-]*$',
                                'maxLength': 253,
                                '$comment': "Write a scheduler plugin's name."},
                 'podClass': {'type': 'object',
                              'additionalProperties': False,
                              'required': ['match'],
                              'properties': {'match': {'type': 'object',
                                                       'additionalProperties': False,
                                                       'required': ['labels'],
                                                       'properties': {'labels': {'allOf': [{'$ref': '#/definitions/labels'},
                                                                                           {'minProperties': 1}],
                                                                                 '$comment': 'Without a '
                                                                                             'label the '
                                                                                             'class would '
                                                                                             'hold every '
                                                                                             'pod.'},
                                                                      'namespaceSelector': {'anyOf': [{'type': 'null'},
                                                                                                      {'$ref': '#/definitions/labelSelector'}]}}},
                                             'profile': {'$ref': '#/definitions/optionalDnsLabel'},
                                             'imageGate': {'type': 'boolean'},
                                             'join': {'$ref': '#/definitions/points'},
                                             'avoid': {'$ref': '#/definitions/points'},
                                             'preferredNodeTerms': {'type': 'array',
                                                                    'items': {'$ref': '#/definitions/preferredNodeTerm'}},
                                             'home': {'$ref': '#/definitions/home'},
                                             'attract': {'type': 'boolean'},
                                             'resources': {'$ref': '#/definitions/requestable'},
                                             'warm': {'$ref': '#/definitions/warm'}}},
                 'points': {'type': 'object',
                            'propertyNames': {'$ref': '#/definitions/dnsLabel'},
                            'additionalProperties': {'type': 'integer',
                                                     'minimum': 1,
                                                     'maximum': 100,
                                                     '$comment': 'null takes a default away.'}},
                 'port': {'type': 'integer',
                          'minimum': 1024,
                          'maximum': 65535,
                          '$comment': "Ports below 1024 need rights that Roost's pods don't have."},
                 'preferredNodeTerm': {'type': 'object',
                                       'additionalProperties': False,
                                       'required': ['preference', 'weight'],
                                       'properties': {'weight': {'type': 'integer',
                                                                 'minimum': 1,
                                                                 'maximum': 100},
                                                      'preference': {'$ref': '#/definitions/nodeTerm'}}},
                 'profile': {'type': 'object',
                             'additionalProperties': False,
                             'properties': {'strategy': {'$ref': '#/definitions/dnsName'},
                                            'plugins': {'$ref': '#/definitions/cleanObject'},
                                            'pluginConfig': {'type': 'array',
                                                             'items': {'allOf': [{'type': 'object',
                                                                                  'required': ['name'],
                                                                                  'properties': {'name': {'$ref': '#/definitions/pluginName'},
                                                                                                 'args': {'type': 'object'}},
                                                                                  'additionalProperties': False},
                                                                                 {'$ref': '#/definitions/clean'}]}}}},
                 'pullPolicy': {'type': 'string', 'enum': ['Always', 'IfNotPresent', 'Never']},
                 'quantities': {'type': 'object',
                                'propertyNames': {'$ref': '#/definitions/labelKey'},
                                'additionalProperties': {'$ref': '#/definitions/quantity'}},
                 'quantity': {'title': 'a Kubernetes quantity',
                              'anyOf': [{'type': 'number', 'minimum': 0},
                                        {'type': 'string',
                                         'pattern': '^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?$',
                                         'maxLength': 32,
                                         '$comment': 'Write it like 500m, 2, 512Mi or 1Gi.'}],
                              '$comment': 'Write it like 500m, 2, 512Mi or 1Gi.'},
                 'requestable': {'type': 'object',
                                 'additionalProperties': False,
                                 'properties': {'cpu': {'$ref': '#/definitions/quantity'},
                                                'memory': {'$ref': '#/definitions/quantity'},
                                                'ephemeral-storage': {'$ref': '#/definitions/quantity'}}},
                 'resourceWeights': {'type': 'array',
                                     'items': {'type': 'object',
                                               'additionalProperties': False,
                                               'required': ['name'],
                                               'properties': {'name': {'$ref': '#/definitions/labelKey'},
                                                              'weight': {'type': 'integer',
                                                                         'minimum': 1,
                                                                         'maximum': 100,
                                                                         '$comment': '0 means 1 to '
                                                                                     'kube-scheduler.'}}}},
                 'resources': {'type': 'object',
                               'additionalProperties': False,
                               'properties': {'requests': {'$ref': '#/definitions/quantities'},
                                              'limits': {'$ref': '#/definitions/quantities'}}},
                 'strategy': {'type': 'object',
                              'additionalProperties': False,
                              'required': ['weights'],
                              'properties': {'weights': {'type': 'object',
                                                         'propertyNames': {'$ref': '#/definitions/pluginName'},
                                                         'additionalProperties': {'type': 'integer',
                                                                                  'minimum': 1,
                                                                                  'maximum': 2147483647,
                                                                                  '$comment': '0 means 1 to '
                                                                                              'kube-scheduler: '
                                                                                              'list a plugin '
                                                                                              'under '
                                                                                              '`disabled` to '
                                                                                              'switch it '
                                                                                              'off.'}},
                                             'disabled': {'type': 'array',
                                                          'items': {'$ref': '#/definitions/pluginName'}},
                                             'fit': {'$ref': '#/definitions/fit'}}},
                 'text': {'title': 'printable text',
                          'type': 'string',
                          'pattern': '^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\ufffe\uffff]*$',
                          '$comment': 'Remove control characters.'},
                 'toleration': {'type': 'object',
                                'additionalProperties': False,
                                'properties': {'key': {'type': 'string',
                                                       'pattern': '^(([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$',
                                                       'maxLength': 317,
                                                       '$comment': "Write a taint's key."},
                                               'operator': {'type': 'string', 'enum': ['Exists', 'Equal']},
                                               'value': {'$ref': '#/definitions/labelValue'},
                                               'effect': {'type': 'string',
                                                          'enum': ['',
                                                                   'NoSchedule',
                                                                   'PreferNoSchedule',
                                                                   'NoExecute']},
                                               'tolerationSeconds': {'type': 'integer'}}},
                 'tolerations': {'type': 'array', 'items': {'$ref': '#/definitions/toleration'}},
                 'warm': {'title': "a class's warm set",
                          'type': ['object', 'null'],
                          'additionalProperties': False,
                          'properties': {'podsPerNode': {'type': 'integer', 'minimum': 0, 'maximum': 1000000},
                                         'spare': {'anyOf': [{'type': 'integer',
                                                              'minimum': -1000000,
                                                              'maximum': 1000000},
                                                             {'type': 'string',
                                                              'pattern': '^-?[0-9]{1,3}%$'}]},
                                         'nodes': {'type': 'integer', 'minimum': 1, 'maximum': 30}}},
                 'window': {'title': 'a window of time',
                            'type': 'object',
                            'additionalProperties': False,
                            'required': ['end', 'name', 'replicas', 'start', 'timeZone'],
                            'properties': {'name': {'$ref': '#/definitions/dnsLabel'},
                                           'replicas': {'type': 'integer',
                                                        'minimum': 0,
                                                        'maximum': 100000,
                                                        '$comment': 'Write a number without quotes.'},
                                           'timeZone': {'type': 'string',
                                                        'pattern': '^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9][A-Za-z0-9_+-]*)*$',
                                                        'maxLength': 64,
                                                        '$comment': 'Write a zone like Europe/Berlin or '
                                                                    'UTC.'},
                                           'start': {'$ref': '#/definitions/windowEdge'},
                                           'end': {'$ref': '#/definitions/windowEdge'}}},
                 'windowEdge': {'title': 'when a window begins or ends',
                                'type': 'string',
                                'pattern': '^([0-9]{4}-[0-9]{2}-[0-9]{2}[T '
                                           '][0-9]{2}:[0-9]{2}(:[0-9]{2})?|[0-9A-Za-z*/,#-]+( '
                                           '[0-9A-Za-z*/,#-]+){4})$',
                                'maxLength': 128,
                                '$comment': 'Write cron text like "0 8 * * 1-5" or a local time like '
                                            '"2026-10-01T08:00", in quotes.'}}}

CHART = ('0.1.0', '0.1.0')

FINGERPRINT = '870ce87f2f1f78136dbd0e674a0fbe443a2acaf641de1c06f6000d741a6b58c7'

TEMPLATES = {
    'controllers/admission-policies.yaml.j2': render_controllers_admission_policies,
    'controllers/certificate-policies.yaml.j2': render_controllers_certificate_policies,
    'controllers/clusterrole.yaml.j2': render_controllers_clusterrole,
    'controllers/clusterrolebinding.yaml.j2': render_controllers_clusterrolebinding,
    'controllers/configmap.yaml.j2': render_controllers_configmap,
    'controllers/deployment.yaml.j2': render_controllers_deployment,
    'controllers/networkpolicy.yaml.j2': render_controllers_networkpolicy,
    'controllers/poddisruptionbudget.yaml.j2': render_controllers_poddisruptionbudget,
    'controllers/prometheusrule.yaml.j2': render_controllers_prometheusrule,
    'controllers/role.yaml.j2': render_controllers_role,
    'controllers/rolebinding.yaml.j2': render_controllers_rolebinding,
    'controllers/service.yaml.j2': render_controllers_service,
    'controllers/serviceaccount.yaml.j2': render_controllers_serviceaccount,
    'controllers/servicemonitor.yaml.j2': render_controllers_servicemonitor,
    'images/nodereadinessrule.yaml.j2': render_images_nodereadinessrule,
    'placeholder/capacitybuffer.yaml.j2': render_placeholder_capacitybuffer,
    'placeholder/networkpolicy.yaml.j2': render_placeholder_networkpolicy,
    'placeholder/poddisruptionbudget.yaml.j2': render_placeholder_poddisruptionbudget,
    'placeholder/statefulset.yaml.j2': render_placeholder_statefulset,
    'puller/daemonset.yaml.j2': render_puller_daemonset,
    'puller/networkpolicy.yaml.j2': render_puller_networkpolicy,
    'puller/serviceaccount.yaml.j2': render_puller_serviceaccount,
    'recorder/clusterrole.yaml.j2': render_recorder_clusterrole,
    'recorder/clusterrolebinding.yaml.j2': render_recorder_clusterrolebinding,
    'recorder/configmap.yaml.j2': render_recorder_configmap,
    'recorder/deployment.yaml.j2': render_recorder_deployment,
    'recorder/networkpolicy.yaml.j2': render_recorder_networkpolicy,
    'recorder/persistentvolumeclaim.yaml.j2': render_recorder_persistentvolumeclaim,
    'recorder/prometheusrule.yaml.j2': render_recorder_prometheusrule,
    'recorder/service.yaml.j2': render_recorder_service,
    'recorder/serviceaccount.yaml.j2': render_recorder_serviceaccount,
    'recorder/servicemonitor.yaml.j2': render_recorder_servicemonitor,
    'scheduler/clusterrolebindings.yaml.j2': render_scheduler_clusterrolebindings,
    'scheduler/configmap.yaml.j2': render_scheduler_configmap,
    'scheduler/deployment.yaml.j2': render_scheduler_deployment,
    'scheduler/lease.yaml.j2': render_scheduler_lease,
    'scheduler/networkpolicy.yaml.j2': render_scheduler_networkpolicy,
    'scheduler/poddisruptionbudget.yaml.j2': render_scheduler_poddisruptionbudget,
    'scheduler/role.yaml.j2': render_scheduler_role,
    'scheduler/rolebinding.yaml.j2': render_scheduler_rolebinding,
    'scheduler/service.yaml.j2': render_scheduler_service,
    'scheduler/serviceaccount.yaml.j2': render_scheduler_serviceaccount,
    'scheduler/servicemonitor.yaml.j2': render_scheduler_servicemonitor,
    'shared/admission-policies.yaml.j2': render_shared_admission_policies,
    'shared/grafana-dashboard.yaml.j2': render_shared_grafana_dashboard,
    'shared/priorityclasses.yaml.j2': render_shared_priorityclasses,
    'webhook/certificate.yaml.j2': render_webhook_certificate,
    'webhook/clusterrole.yaml.j2': render_webhook_clusterrole,
    'webhook/clusterrolebinding.yaml.j2': render_webhook_clusterrolebinding,
    'webhook/configmap.yaml.j2': render_webhook_configmap,
    'webhook/deployment.yaml.j2': render_webhook_deployment,
    'webhook/issuer.yaml.j2': render_webhook_issuer,
    'webhook/mutatingwebhookconfiguration.yaml.j2': render_webhook_mutatingwebhookconfiguration,
    'webhook/networkpolicy.yaml.j2': render_webhook_networkpolicy,
    'webhook/poddisruptionbudget.yaml.j2': render_webhook_poddisruptionbudget,
    'webhook/prometheusrule.yaml.j2': render_webhook_prometheusrule,
    'webhook/role.yaml.j2': render_webhook_role,
    'webhook/rolebinding.yaml.j2': render_webhook_rolebinding,
    'webhook/service.yaml.j2': render_webhook_service,
    'webhook/serviceaccount.yaml.j2': render_webhook_serviceaccount,
    'webhook/servicemonitor.yaml.j2': render_webhook_servicemonitor,
}
