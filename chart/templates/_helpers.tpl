{{- /*
Names, as roost_core/placement/labels.py makes them for `roost render`. Written by hand: its twin in Python is too, and
tests/parity/ holds the two together. Each takes a list whose first item is the chart's root (`$`).
*/}}

{{- /* roost.shorten (list NAME LIMIT): NAME, or its head and an 8-digit hash when it is longer than LIMIT. */}}
{{- define "roost.shorten" -}}
{{- $name := index . 0 -}}
{{- $limit := int (index . 1) -}}
{{- if le (len $name) $limit -}}
{{- $name -}}
{{- else -}}
{{- printf "%s-%s" (regexReplaceAll "[-._]+$" (trunc (sub $limit 9 | int) $name) "") (sha256sum $name | trunc 8) -}}
{{- end -}}
{{- end }}

{{- /* roost.dns_label (list NAME LIMIT): like roost.shorten, for names that may not hold dots. */}}
{{- define "roost.dns_label" -}}
{{- $name := index . 0 -}}
{{- $limit := int (index . 1) -}}
{{- if contains "." $name -}}
{{- $head := replace "." "-" $name | trunc (sub $limit 9 | int) -}}
{{- printf "%s-%s" (regexReplaceAll "[-._]+$" $head "") (sha256sum $name | trunc 8) -}}
{{- else -}}
{{- include "roost.shorten" (list $name $limit) -}}
{{- end -}}
{{- end }}

{{- /* roost.base_name RELEASE: how the names of its objects begin. */}}
{{- define "roost.base_name" -}}
{{- ternary . (printf "%s-roost" .) (hasPrefix "roost" .) -}}
{{- end }}

{{- /* roost.object_name (list $ COMPONENT [LIMIT]): name of an object in the release's namespace. */}}
{{- define "roost.object_name" -}}
{{- $root := index . 0 -}}
{{- $base := $root.Values.fullnameOverride | default (include "roost.base_name" $root.Release.Name) -}}
{{- $limit := 63 -}}
{{- if gt (len .) 2 }}{{ $limit = int (index . 2) }}{{ end -}}
{{- include "roost.dns_label" (list (printf "%s-%s" $base (index . 1)) $limit) -}}
{{- end }}

{{- /* roost.cluster_object_name (list $ COMPONENT): name of an object without a namespace. */}}
{{- define "roost.cluster_object_name" -}}
{{- $root := index . 0 -}}
{{- printf "%s.%s.roost-%s" $root.Release.Name $root.Release.Namespace (index . 1) -}}
{{- end }}

{{- /* roost.scheduler_name (list $ PROFILE): schedulerName of a profile. */}}
{{- define "roost.scheduler_name" -}}
{{- $root := index . 0 -}}
{{- include "roost.shorten" (list (printf "%s.%s.%s" $root.Release.Name $root.Release.Namespace (index . 1)) 63) -}}
{{- end }}

{{- /* roost.dashboard_uid (list $ KIND): Grafana's name for a dashboard in links. */}}
{{- define "roost.dashboard_uid" -}}
{{- $root := index . 0 -}}
{{- include "roost.dns_label" (list (printf "roost-%s_%s_%s" (index . 1) $root.Release.Name $root.Release.Namespace) 40) -}}
{{- end }}

{{- /* roost.attract_label (list $ SET): node label that draws the placeholders of one set. */}}
{{- define "roost.attract_label" -}}
{{- $root := index . 0 -}}
{{- printf "%s%s" (include "roost.attract_prefix" (list $root)) (include "roost.shorten" (list (index . 1) 63)) -}}
{{- end }}

{{- /* roost.attract_prefix (list $), roost.pulled_prefix (list $): how all such labels of this release begin. */}}
{{- define "roost.attract_prefix" -}}
{{- $root := index . 0 -}}
{{- printf "attract-placeholders.%s.%s.hub.jupyter.org/" $root.Release.Name $root.Release.Namespace -}}
{{- end }}
{{- define "roost.pulled_prefix" -}}
{{- $root := index . 0 -}}
{{- printf "images-pulled.%s.%s.hub.jupyter.org/" $root.Release.Name $root.Release.Namespace -}}
{{- end }}

{{- /* roost.startup_taint (list $): key of the taint under which autoscaled nodes join. */}}
{{- define "roost.startup_taint" -}}
{{- $root := index . 0 -}}
{{- $name := printf "roost-%s.%s" $root.Release.Name $root.Release.Namespace -}}
{{- printf "startup-taint.cluster-autoscaler.kubernetes.io/%s" (include "roost.shorten" (list $name 63)) -}}
{{- end }}

{{- /* roost.readiness_taint (list $): key of the taint that a NodeReadinessRule puts on nodes. */}}
{{- define "roost.readiness_taint" -}}
{{- $root := index . 0 -}}
{{- $name := printf "roost-%s.%s" $root.Release.Name $root.Release.Namespace -}}
{{- printf "readiness.k8s.io/%s" (include "roost.shorten" (list $name 63)) -}}
{{- end }}

{{- /* roost.images_condition (list $): type of the node condition that says whether this hub's images are there. */}}
{{- define "roost.images_condition" -}}
{{- printf "%sImagesPulled" (include "roost.pulled_prefix" .) -}}
{{- end }}

{{- /* roost.normalise_reference REFERENCE: the full form of an image's name, as roost_core/objects/images.py gives it. */}}
{{- define "roost.normalise_reference" -}}
{{- $digest := "" -}}
{{- $named := . -}}
{{- if contains "@" . -}}
{{- $parts := splitn "@" 2 . -}}
{{- $named = $parts._0 -}}
{{- $digest = $parts._1 -}}
{{- end -}}
{{- $last := regexFind "[^/]*$" $named -}}
{{- $tag := "" -}}
{{- if contains ":" $last -}}
{{- $tag = regexReplaceAll "^[^:]*:" $last "" -}}
{{- end -}}
{{- $repository := printf "%s%s" (trimSuffix $last $named) (regexFind "^[^:]*" $last) -}}
{{- $registry := "docker.io" -}}
{{- $path := $repository -}}
{{- if contains "/" $repository -}}
{{- $first := regexFind "^[^/]*" $repository -}}
{{- if or (eq $first "localhost") (regexMatch "[.:A-Z]" $first) -}}
{{- $path = trimPrefix (printf "%s/" $first) $repository -}}
{{- if ne $first "index.docker.io" }}{{ $registry = $first }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if and (eq $registry "docker.io") (not (contains "/" $path)) }}{{ $path = printf "library/%s" $path }}{{ end -}}
{{- $repository = printf "%s/%s" $registry $path -}}
{{- if $digest -}}
{{- printf "%s@%s" $repository $digest -}}
{{- else -}}
{{- printf "%s:%s" $repository ($tag | default "latest") -}}
{{- end -}}
{{- end }}

{{- /* roost.pulled_label (list $ REFERENCE): node label that says: this node holds the image. */}}
{{- define "roost.pulled_label" -}}
{{- $root := index . 0 -}}
{{- $full := include "roost.normalise_reference" (index . 1) -}}
{{- $short := include "roost.short_name" $full -}}
{{- printf "%s%s-%s" (include "roost.pulled_prefix" (list $root)) $short (sha256sum $full | trunc 8) -}}
{{- end }}

{{- /* roost.short_name NORMALISED: the last part of a reference, readable in a label. */}}
{{- define "roost.short_name" -}}
{{- $last := regexFind "[^/]*$" . | regexFind "^[^@]*" -}}
{{- regexReplaceAll "[^A-Za-z0-9]+" $last "-" | trunc 54 | trimAll "-" | default "image" -}}
{{- end }}

{{- /* roost.puller_container (list $ REFERENCE): name of the puller's container for an image. */}}
{{- define "roost.puller_container" -}}
{{- $full := include "roost.normalise_reference" (index . 1) -}}
{{- printf "%s-%s" (include "roost.short_name" $full | lower) (sha256sum $full | trunc 8) -}}
{{- end }}

{{- /* roost.in_registry (list $ IMAGE): an image that Roost runs, as `imageRegistry` has it. */}}
{{- define "roost.in_registry" -}}
{{- $registry := (index . 0).Values.imageRegistry -}}
{{- ternary (printf "%s/%s" $registry (index . 1)) (index . 1) (not (empty $registry)) -}}
{{- end }}

{{- /* roost.pause_image (list $) */}}
{{- define "roost.pause_image" -}}
{{- $image := (index . 0).Values.placeholder.image -}}
{{- include "roost.in_registry" (list (index . 0) (printf "%s:%s" $image.name $image.tag)) -}}
{{- end }}

{{- /* roost.own_image (list $): Roost's own image. */}}
{{- define "roost.own_image" -}}
{{- include "roost.image_reference" (list (index . 0) (index . 0).Values.image) -}}
{{- end }}

{{- /* roost.lab_image (list $): roost-lab's image. */}}
{{- define "roost.lab_image" -}}
{{- include "roost.image_reference" (list (index . 0) (index . 0).Values.recorder.image) -}}
{{- end }}

{{- /* roost.image_reference (list $ image): an image of Roost's own, by digest where one is given. */}}
{{- define "roost.image_reference" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $reference := printf "%s:%s" $image.name ($image.tag | default $root.Chart.AppVersion) -}}
{{- if $image.digest }}{{ $reference = printf "%s@%s" $image.name $image.digest }}{{ end -}}
{{- include "roost.in_registry" (list $root $reference) -}}
{{- end }}

{{- /* roost.puller_method (list $): `prePuller.method` for this cluster. */}}
{{- define "roost.puller_method" -}}
{{- $root := index . 0 -}}
{{- $method := $root.Values.prePuller.method -}}
{{- if eq $method "auto" -}}
{{- ternary "imageVolume" "noop" (semverCompare ">=1.35-0" $root.Capabilities.KubeVersion.Version) -}}
{{- else -}}
{{- $method -}}
{{- end -}}
{{- end }}

{{- /* roost.minor_for_cluster (list $ BY_MINOR): the newest minor that the cluster has reached, else the oldest. */}}
{{- define "roost.minor_for_cluster" -}}
{{- $root := index . 0 -}}
{{- $reached := "" -}}
{{- $oldest := "" -}}
{{- range $minor, $_ := index . 1 -}}
{{- if or (not $oldest) (semverCompare (printf "<%s.0" $oldest) (printf "%s.0" $minor)) }}{{ $oldest = $minor }}{{ end -}}
{{- if semverCompare (printf ">=%s-0" $minor) $root.Capabilities.KubeVersion.Version -}}
{{- if or (not $reached) (semverCompare (printf ">%s.0" $reached) (printf "%s.0" $minor)) }}{{ $reached = $minor }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $reached | default $oldest -}}
{{- end }}

{{- /* roost.for_cluster (list $ BY_MINOR): the entry, a string, of that minor. */}}
{{- define "roost.for_cluster" -}}
{{- $minor := include "roost.minor_for_cluster" . -}}
{{- if $minor }}{{ index . 1 | dig $minor "" }}{{ end -}}
{{- end }}

{{- /* roost.merge (list MAP MAP …): as JSON, all entries; a later map's wins. Sprig's merge would skip empty ones. */}}
{{- define "roost.merge" -}}
{{- $merged := dict -}}
{{- range $map := . }}{{ range $key, $value := $map }}{{ $_ := set $merged $key $value }}{{ end }}{{ end -}}
{{- toJson $merged -}}
{{- end }}

{{- /* roost.named_image IMAGE: {name, tag} as one reference; "" without a name. */}}
{{- define "roost.named_image" -}}
{{- if and (kindIs "map" .) (kindIs "string" (get (ternary . dict (kindIs "map" .)) "name")) -}}
{{- if .name }}{{ ternary (printf "%v:%v" .name .tag) .name (not (empty .tag)) }}{{ end -}}
{{- end -}}
{{- end }}

{{- /* roost.part MAP KEY (list): as JSON, the map under KEY; {} for whatever else stands there. */}}
{{- define "roost.part" -}}
{{- $found := dict -}}
{{- if kindIs "map" (index . 0) }}{{ $found = get (index . 0) (index . 1) }}{{ end -}}
{{- ternary $found dict (kindIs "map" $found) | toJson -}}
{{- end }}

{{- /* roost.entries MAP KEY (list): as JSON, the entries of the list, or of the map by key, under KEY. */}}
{{- define "roost.entries" -}}
{{- $entries := list -}}
{{- if kindIs "map" (index . 0) -}}
{{- $found := get (index . 0) (index . 1) -}}
{{- if or (kindIs "map" $found) (kindIs "slice" $found) -}}
{{- range $_, $entry := $found }}{{ $entries = append $entries $entry }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson $entries -}}
{{- end }}

{{- /* roost.merged_selector (list SELECTOR OVER): as JSON, KubeSpawner's merge; null deletes, what is no text is passed over. */}}
{{- define "roost.merged_selector" -}}
{{- $merged := dict -}}
{{- range $key, $value := index . 0 }}{{ $_ := set $merged $key $value }}{{ end -}}
{{- if kindIs "map" (index . 1) -}}
{{- range $key, $value := index . 1 -}}
{{- if kindIs "invalid" $value }}{{ $_ := unset $merged $key }}{{ else if kindIs "string" $value }}{{ $_ := set $merged $key $value }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson $merged -}}
{{- end }}

{{- /* roost.objects VALUE: as JSON, the entries of a list that are maps; "" for what is no list. */}}
{{- define "roost.objects" -}}
{{- if kindIs "slice" . -}}
{{- $found := list -}}
{{- range $_, $entry := . }}{{ if kindIs "map" $entry }}{{ $found = append $found $entry }}{{ end }}{{ end -}}
{{- toJson $found -}}
{{- end -}}
{{- end }}

{{- /* roost.asked (list NAMES AMOUNTS): as JSON, names of extended resources with those of AMOUNTS; null and 0 take one away. */}}
{{- define "roost.asked" -}}
{{- $found := dict -}}
{{- range $_, $name := index . 0 }}{{ $_ := set $found $name true }}{{ end -}}
{{- range $name, $amount := index . 1 -}}
{{- if contains "/" $name -}}
{{- if or (kindIs "invalid" $amount) (eq (toString $amount) "0") }}{{ $_ := unset $found $name }}{{ else }}{{ $_ := set $found $name true }}{{ end -}}
{{- end -}}
{{- end -}}
{{- keys $found | sortAlpha | toJson -}}
{{- end }}

{{- /* roost.with_images (list IMAGES CONTAINERS): as JSON, images, then those of the containers, each a map or its image, that
can be known. */}}
{{- define "roost.with_images" -}}
{{- $images := index . 0 -}}
{{- range $_, $container := index . 1 -}}
{{- $image := $container -}}
{{- if kindIs "map" $container }}{{ $image = get $container "image" }}{{ end -}}
{{- if kindIs "string" $image -}}
{{- if and $image (not (contains "{" $image)) (not (has $image $images)) }}{{ $images = append $images $image }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson $images -}}
{{- end }}

{{- /* roost.overridden (list USE HOLDER): as JSON, what `kubespawner_override` of a profile or a choice makes of a use: an image,
what runs beside it, and where its users may go. KubeSpawner merges dictionaries and replaces lists. */}}
{{- define "roost.overridden" -}}
{{- $use := index . 0 -}}
{{- $override := include "roost.part" (list (index . 1) "kubespawner_override") | fromJson -}}
{{- $image := get $override "image" -}}
{{- if or (kindIs "invalid" $image) (and (kindIs "string" $image) (eq (toString $image) "")) -}}
{{- $image = $use.image -}}
{{- else if or (not (kindIs "string" $image)) (contains "{" (toString $image)) -}}
{{- $image = "" -}}
{{- end -}}
{{- $selector := include "roost.merged_selector" (list $use.selector (get $override "node_selector")) | fromJson -}}
{{- $tolerations := include "roost.objects" (get $override "tolerations") | default (toJson $use.tolerations) | fromJsonArray -}}
{{- $terms := include "roost.objects" (get $override "node_affinity_required") | default (toJson $use.terms) | fromJsonArray -}}
{{- $extended := $use.extended -}}
{{- range $key := list "extra_resource_limits" "extra_resource_guarantees" -}}
{{- $extended = include "roost.asked" (list $extended (include "roost.part" (list $override $key) | fromJson)) | fromJsonArray -}}
{{- end -}}
{{- $containers := $use.containers -}}
{{- range $key := list "init_containers" "extra_containers" -}}
{{- $entries := include "roost.entries" (list $override $key) | fromJsonArray -}}
{{- $containers = include "roost.with_images" (list $containers $entries) | fromJsonArray -}}
{{- end -}}
{{- dict "image" $image "selector" $selector "tolerations" $tolerations "terms" $terms "extended" $extended "containers" $containers | toJson -}}
{{- end }}

{{- /* roost.default_use SINGLEUSER: as JSON, what a user has who chooses nothing. */}}
{{- define "roost.default_use" -}}
{{- $extended := list -}}
{{- range $key := list "limits" "guarantees" -}}
{{- $extended = include "roost.asked" (list $extended (include "roost.part" (list $.extraResource $key) | fromJson)) | fromJsonArray -}}
{{- end -}}
{{- $tools := list (dict "image" (include "roost.named_image" .networkTools.image)) -}}
{{- $all := concat .initContainers $tools .extraContainers -}}
{{- $containers := include "roost.with_images" (list list $all) | fromJsonArray -}}
{{- $selector := include "roost.merged_selector" (list dict .nodeSelector) | fromJson -}}
{{- $image := include "roost.named_image" .image -}}
{{- dict "image" $image "selector" $selector "tolerations" .extraTolerations "terms" .extraNodeAffinity.required "extended" $extended "containers" $containers | toJson -}}
{{- end }}

{{- /* roost.uses (list SINGLEUSER PREPULLER): as JSON, each image with the nodes it is for, in order of use; twin of _uses in
roost_core/placement/managed_images.py. */}}
{{- define "roost.uses" -}}
{{- $singleuser := index . 0 -}}
{{- $puller := index . 1 -}}
{{- $default := include "roost.default_use" $singleuser | fromJson -}}
{{- $uses := list $default -}}
{{- if $puller.pullProfileListImages -}}
{{- range $_, $profile := $singleuser.profileList -}}
{{- $found := list (include "roost.overridden" (list $default $profile) | fromJson) -}}
{{- range $_, $option := include "roost.entries" (list $profile "profile_options") | fromJsonArray -}}
{{- $choices := include "roost.entries" (list $option "choices") | fromJsonArray -}}
{{- if $choices -}}
{{- $unlisted := include "roost.part" (list $option "unlisted_choice") | fromJson -}}
{{- $enabled := get $unlisted "enabled" -}}
{{- if and (kindIs "bool" $enabled) $enabled }}{{ $choices = append $choices $unlisted }}{{ end -}}
{{- $made := list -}}
{{- $seen := dict -}}
{{- range $_, $choice := $choices -}}
{{- range $_, $use := $found -}}
{{- $after := include "roost.overridden" (list $use $choice) -}}
{{- if not (hasKey $seen $after) -}}
{{- $_ := set $seen $after true -}}
{{- $made = append $made (fromJson $after) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found = $made -}}
{{- end -}}
{{- end -}}
{{- $uses = concat $uses $found -}}
{{- end -}}
{{- end -}}
{{- range $_, $image := $puller.extraImages -}}
{{- $uses = append $uses (include "roost.merge" (list $default (dict "image" (include "roost.named_image" $image))) | fromJson) -}}
{{- end -}}
{{- toJson $uses -}}
{{- end }}

{{- /* roost.references USE: as JSON, the images that a user's pod runs, in the order of its start. */}}
{{- define "roost.references" -}}
{{- ternary (append .containers .image) .containers (not (empty .image)) | toJson -}}
{{- end }}

{{- /* roost.use_tolerations (list USE ALWAYS): as JSON, what the puller of a use tolerates; twin of _tolerations. */}}
{{- define "roost.use_tolerations" -}}
{{- $use := index . 0 -}}
{{- $all := concat (index . 1) $use.tolerations -}}
{{- range $_, $name := $use.extended }}{{ $all = append $all (dict "key" $name "operator" "Exists") }}{{ end -}}
{{- $seen := dict -}}
{{- $found := list -}}
{{- range $_, $one := $all -}}
{{- if not (hasKey $seen (toJson $one)) }}{{ $_ := set $seen (toJson $one) true }}{{ $found = append $found $one }}{{ end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* roost.puller_component (list $ SELECTOR [REST]): component of the puller for nodes with these labels, as roost_core/placement/labels.py
has it; REST: what else selects its nodes, as text. */}}
{{- define "roost.puller_component" -}}
{{- $values := list -}}
{{- $text := "" -}}
{{- range $key, $value := index . 1 -}}
{{- $values = append $values $value -}}
{{- $text = printf "%s%s=%s," $text $key $value -}}
{{- end -}}
{{- if gt (len .) 2 }}{{ $text = printf "%s%s" $text (index . 2) }}{{ end -}}
{{- $readable := regexReplaceAll "[^A-Za-z0-9]+" (join "-" $values) "-" | lower | trunc 30 | trimAll "-" -}}
{{- ternary (printf "puller-%s" $readable) "puller" (not (empty $readable)) }}-{{ sha256sum $text | trunc 8 -}}
{{- end }}

{{- /* roost.pullers (list $ SINGLEUSER PREPULLER): as JSON, each DaemonSet of the puller: name, nodeSelector, tolerations,
requiredNodeTerms, images; twin of puller_groups in roost_core/placement/managed_images.py. */}}
{{- define "roost.pullers" -}}
{{- $root := index . 0 -}}
{{- $always := (index . 2).tolerations -}}
{{- $uses := include "roost.uses" (list (index . 1) (index . 2)) | fromJsonArray -}}
{{- $everywhere := toJson (first $uses).selector -}}
{{- $usual := toJson (list (include "roost.use_tolerations" (list (first $uses) $always) | fromJsonArray) (first $uses).terms) -}}
{{- $order := list -}}
{{- $groups := dict -}}
{{- range $use := $uses -}}
{{- $references := include "roost.references" $use | fromJsonArray -}}
{{- if $references -}}
{{- $tolerations := include "roost.use_tolerations" (list $use $always) | fromJsonArray -}}
{{- $rest := toJson (list $tolerations $use.terms) -}}
{{- $component := "puller" -}}
{{- if or (ne (toJson $use.selector) $everywhere) (ne $rest $usual) -}}
{{- $component = include "roost.puller_component" (list $root $use.selector (ternary "" $rest (eq $rest $usual))) -}}
{{- end -}}
{{- if not (hasKey $groups $component) -}}
{{- $_ := set $groups $component (dict "selector" $use.selector "tolerations" $tolerations "terms" $use.terms "images" list "seen" dict) -}}
{{- $order = ternary (prepend $order $component) (append $order $component) (eq $component "puller") -}}
{{- end -}}
{{- $group := get $groups $component -}}
{{- range $reference := $references -}}
{{- $full := include "roost.normalise_reference" $reference -}}
{{- if not (hasKey $group.seen $full) -}}
{{- $_ := set $group.seen $full true -}}
{{- $_ := set $group "images" (append $group.images $reference) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found := list -}}
{{- range $component := $order -}}
{{- $group := get $groups $component -}}
{{- $selector := include "roost.merged_selector" (list $group.selector (index $ 2).nodeSelector) | fromJson -}}
{{- $name := include "roost.object_name" (list $root $component) -}}
{{- $found = append $found (dict "name" $name "nodeSelector" $selector "tolerations" $group.tolerations "requiredNodeTerms" $group.terms "images" $group.images) -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* roost.pulled_labels (list $ SINGLEUSER PREPULLER): as JSON, the node label of each image that the puller brings, by
each way to write that image. Which images those are: roost_core/placement/managed_images.py. */}}
{{- define "roost.pulled_labels" -}}
{{- $root := index . 0 -}}
{{- $labels := dict -}}
{{- range $use := include "roost.uses" (list (index . 1) (index . 2)) | fromJsonArray -}}
{{- range $reference := include "roost.references" $use | fromJsonArray -}}
{{- $full := include "roost.normalise_reference" $reference -}}
{{- $label := include "roost.pulled_label" (list $root $full) -}}
{{- $path := trimPrefix "docker.io/" $full -}}
{{- range $form := list $full $path (trimPrefix "library/" $path) -}}
{{- range $prefix := list "" "docker.io/" "index.docker.io/" -}}
{{- $written := printf "%s%s" $prefix $form -}}
{{- if eq (include "roost.normalise_reference" $written) $full -}}
{{- $_ := set $labels $written $label -}}
{{- $_ := set $labels (trimSuffix ":latest" $written) $label -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $labels -}}
{{- end }}

{{- /* roost.placeholder_sets (list $ SETS DEFAULTS): as JSON, each set with its StatefulSet's name, and with the defaults of
what it doesn't name. */}}
{{- define "roost.placeholder_sets" -}}
{{- $root := index . 0 -}}
{{- $defaults := index . 2 -}}
{{- $found := list -}}
{{- range $set := index . 1 -}}
{{- $one := dict "countBy" "pods" "windows" list "learn" nil -}}
{{- range $key, $value := $defaults }}{{ $_ := set $one $key $value }}{{ end -}}
{{- range $key, $value := $set }}{{ if not (kindIs "invalid" $value) }}{{ $_ := set $one $key $value }}{{ end }}{{ end -}}
{{- $_ := set $one "statefulSet" (include "roost.object_name" (list $root (printf "placeholder-%s" $set.name) 52)) -}}
{{- $found = append $found $one -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* roost.core_pod (list COREPODS COMPONENT): as JSON, `corePods` as one component has it; twin of core_pod. */}}
{{- define "roost.core_pod" -}}
{{- $own := index . 1 -}}
{{- $changes := dict -}}
{{- range $key, $_ := index . 0 }}{{ if hasKey $own $key }}{{ $_ := set $changes $key (get $own $key) }}{{ end }}{{ end -}}
{{- include "roost.laid_over" (list (index . 0) $changes) -}}
{{- end }}

{{- /* roost.laid_over (list BELOW ABOVE): as JSON, two maps put together as Helm does; nil changes nothing. */}}
{{- define "roost.laid_over" -}}
{{- $merged := deepCopy (index . 0) -}}
{{- range $key, $value := index . 1 -}}
{{- if and (kindIs "map" $value) (hasKey $merged $key) (kindIs "map" (get $merged $key)) -}}
{{- $_ := set $merged $key (include "roost.laid_over" (list (get $merged $key) $value) | fromJson) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $_ := set $merged $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $merged -}}
{{- end }}

{{- /* roost.refuse_uncertified (list $): stop where the controllers can't keep the webhook's certificates, in the words of
   `roost validate` (generator/checks/lint.py): else an install would pass whose webhook never starts. */}}
{{- define "roost.refuse_uncertified" -}}
{{- $values := (index . 0).Values -}}
{{- if and $values.enabled (eq $values.admission.mode "webhook") (eq $values.webhook.certificates.mode "self") -}}
{{- if not $values.controllers.enabled -}}
{{- fail "webhook.certificates.mode: self with controllers.enabled: false: the controllers create the certificate, so the webhook gets none. Use mode certManager or secret, or controllers.enabled: true." -}}
{{- else if eq (int64 $values.controllers.replicas) 0 -}}
{{- fail "webhook.certificates.mode: self with controllers.replicas: 0: the controllers create the certificate, so the webhook gets none. Use mode certManager or secret, or controllers.replicas: 2." -}}
{{- else if not $values.clusterResources -}}
{{- fail "webhook.certificates.mode: self with clusterResources: false: nothing can write the caBundle, and without the admission policies an account that can create Secrets can get a token of every account in the namespace. Use mode secret or certManager: whoever creates the webhook configuration supplies the CA bundle." -}}
{{- end -}}
{{- end -}}
{{- end }}
