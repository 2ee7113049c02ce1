{{- /* Written by `make generated` from Python's own, which each names. */}}

{{- /* roost.object_name (list $ component limit): roost_core/placement/labels.py */}}
{{- define "roost.object_name" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $limit := 63 -}}
{{- if gt (len .) 2 }}{{ $limit = index . 2 }}{{ end -}}
{{- (include "roost.dns_label" (list $root (printf "%v-%v" (include "roost.base_name" (list $root)) $component) $limit)) -}}
{{- end }}

{{- /* roost.cluster_object_name (list $ component): roost_core/placement/labels.py */}}
{{- define "roost.cluster_object_name" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- (printf "%v.%v.roost-%v" $root.Release.Name $root.Release.Namespace $component) -}}
{{- end }}

{{- /* roost.scheduler_name (list $ profile): roost_core/placement/labels.py */}}
{{- define "roost.scheduler_name" -}}
{{- $root := index . 0 -}}
{{- $profile := index . 1 -}}
{{- (include "roost.shorten" (list $root (printf "%v.%v.%v" $root.Release.Name $root.Release.Namespace $profile) 63)) -}}
{{- end }}

{{- /* roost.dashboard_uid (list $ kind): roost_core/placement/labels.py */}}
{{- define "roost.dashboard_uid" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
{{- (include "roost.dns_label" (list $root (printf "roost-%v_%v_%v" $kind $root.Release.Name $root.Release.Namespace) 40)) -}}
{{- end }}

{{- /* roost.attract_label (list $ placeholder_set): roost_core/placement/labels.py */}}
{{- define "roost.attract_label" -}}
{{- $root := index . 0 -}}
{{- $placeholder_set := index . 1 -}}
{{- (printf "%v%v" (include "roost.attract_prefix" (list $root)) (include "roost.shorten" (list $root $placeholder_set 63))) -}}
{{- end }}

{{- /* roost.pulled_label (list $ reference): roost_core/placement/labels.py */}}
{{- define "roost.pulled_label" -}}
{{- $root := index . 0 -}}
{{- $reference := index . 1 -}}
{{- $normalised := (include "roost.normalise_reference" (list $root $reference)) -}}
{{- (printf "%v%v-%v" (include "roost.pulled_prefix" (list $root)) (include "roost.short_name" (list $root $normalised)) (include "roost.hash" (list $root $normalised))) -}}
{{- end }}

{{- /* roost.startup_taint (list $): roost_core/placement/labels.py */}}
{{- define "roost.startup_taint" -}}
{{- $root := index . 0 -}}
{{- (printf "%v%v" (index (list "startup-taint.cluster-autoscaler.kubernetes.io/" "ignore-taint.cluster-autoscaler.kubernetes.io/") 0) (include "roost.shorten" (list $root (printf "roost-%v.%v" $root.Release.Name $root.Release.Namespace) 63))) -}}
{{- end }}

{{- /* roost.pulled_prefix (list $): roost_core/placement/labels.py */}}
{{- define "roost.pulled_prefix" -}}
{{- $root := index . 0 -}}
{{- (printf "images-pulled.%v.%v.hub.jupyter.org/" $root.Release.Name $root.Release.Namespace) -}}
{{- end }}

{{- /* roost.attract_prefix (list $): roost_core/placement/labels.py */}}
{{- define "roost.attract_prefix" -}}
{{- $root := index . 0 -}}
{{- (printf "attract-placeholders.%v.%v.hub.jupyter.org/" $root.Release.Name $root.Release.Namespace) -}}
{{- end }}

{{- /* roost.puller_component (list $ node_selector rest): roost_core/placement/labels.py */}}
{{- define "roost.puller_component" -}}
{{- $root := index . 0 -}}
{{- $node_selector := index . 1 -}}
{{- $rest := "" -}}
{{- if gt (len .) 2 }}{{ $rest = index . 2 }}{{ end -}}
{{- $t1 := list -}}
{{- range $_, $value := $node_selector -}}
{{- $t1 = append $t1 $value -}}
{{- end -}}
{{- $values := (join "-" $t1) -}}
{{- $t2 := list -}}
{{- range $key, $value := $node_selector -}}
{{- $t2 = append $t2 (printf "%v=%v," $key $value) -}}
{{- end -}}
{{- $pairs := (join "" $t2) -}}
{{- $readable := (trimAll "-" (trunc 30 (lower (regexReplaceAll "[^A-Za-z0-9]+" $values "-")))) -}}
{{- $t3 := "" -}}
{{- if $readable -}}
{{- $t3 = (printf "puller-%v" $readable) -}}
{{- else -}}
{{- $t3 = "puller" -}}
{{- end -}}
{{- $head := $t3 -}}
{{- (printf "%v-%v" $head (include "roost.hash" (list $root (printf "%v%v" $pairs $rest)))) -}}
{{- end }}

{{- /* roost.puller_container (list $ reference): roost_core/placement/labels.py */}}
{{- define "roost.puller_container" -}}
{{- $root := index . 0 -}}
{{- $reference := index . 1 -}}
{{- $normalised := (include "roost.normalise_reference" (list $root $reference)) -}}
{{- (printf "%v-%v" (lower (include "roost.short_name" (list $root $normalised))) (include "roost.hash" (list $root $normalised))) -}}
{{- end }}

{{- /* roost.base_name (list $): roost_core/placement/labels.py */}}
{{- define "roost.base_name" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.fullnameOverride -}}
{{- (toString $root.Values.fullnameOverride) -}}
{{- else -}}
{{- $t1 := "" -}}
{{- if (hasPrefix "roost" $root.Release.Name) -}}
{{- $t1 = $root.Release.Name -}}
{{- else -}}
{{- $t1 = (printf "%v-roost" $root.Release.Name) -}}
{{- end -}}
{{- $t1 -}}
{{- end -}}
{{- end }}

{{- /* roost.pulled_labels (list $ singleuser puller): generator/render/functions.py */}}
{{- define "roost.pulled_labels" -}}
{{- $root := index . 0 -}}
{{- $singleuser := index . 1 -}}
{{- $puller := index . 2 -}}
{{- $label := "" -}}
{{- $path := "" -}}
{{- $written := "" -}}
{{- $by_reference := (dict) -}}
{{- range $_, $full := (include "roost.managed_images" (list $root $singleuser $puller) | fromJsonArray) -}}
{{- $label = (include "roost.pulled_label" (list $root $full)) -}}
{{- $path = (trimPrefix "docker.io/" $full) -}}
{{- range $_, $form := (list $full $path (trimPrefix "library/" $path)) -}}
{{- range $_, $prefix := (list "" "docker.io/" "index.docker.io/") -}}
{{- $written = (printf "%v%v" $prefix $form) -}}
{{- if (eq (include "roost.normalise_reference" (list $root $written)) $full) -}}
{{- $_ := set $by_reference $written $label -}}
{{- $_ := set $by_reference (trimSuffix ":latest" $written) $label -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $by_reference | toJson -}}
{{- end }}

{{- /* roost.pullers (list $ singleuser puller): generator/render/functions.py */}}
{{- define "roost.pullers" -}}
{{- $root := index . 0 -}}
{{- $singleuser := index . 1 -}}
{{- $puller := index . 2 -}}
{{- $t1 := list -}}
{{- range $_, $group := (include "roost.puller_groups" (list $root $singleuser $puller) | fromJsonArray) -}}
{{- $t1 = append $t1 (dict "name" (include "roost.object_name" (list $root $group.component)) "nodeSelector" $group.node_selector "tolerations" $group.tolerations "requiredNodeTerms" $group.required_terms "images" $group.images) -}}
{{- end -}}
{{- $t1 | toJson -}}
{{- end }}

{{- /* roost.are_too_many (list $ singleuser pre_puller): generator/render/managed_images.py */}}
{{- define "roost.are_too_many" -}}
{{- $root := index . 0 -}}
{{- $singleuser := index . 1 -}}
{{- $pre_puller := index . 2 -}}
{{- (dict "value" (not (include "roost.uses" (list $root $singleuser $pre_puller) | fromJsonArray))) | toJson -}}
{{- end }}

{{- /* roost.profile_seats (list $ singleuser defaults sets): generator/render/managed_images.py */}}
{{- define "roost.profile_seats" -}}
{{- $root := index . 0 -}}
{{- $singleuser := index . 1 -}}
{{- $defaults := index . 2 -}}
{{- $sets := index . 3 -}}
{{- $choices := "" -}}
{{- $names := "" -}}
{{- $rules := "" -}}
{{- $use := "" -}}
{{- $usual := (set (set (set (deepCopy (include "roost.default_use" (list $root $singleuser) | fromJson)) "node_selector" (include "roost.merged" (list $root (dict) (include "roost.mapping" (list $root $defaults "nodeSelector") | fromJson)) | fromJson)) "tolerations" (or (include "roost.objects" (list $root (include "roost.value" (list $root $defaults "tolerations") | fromJson).value) | fromJson).value (list))) "required_terms" (or (include "roost.objects" (list $root (include "roost.value" (list $root $defaults "requiredNodeTerms") | fromJson).value) | fromJson).value (list))) -}}
{{- $set_of := (dict) -}}
{{- range $_, $one := $sets -}}
{{- $rules = (toJson (list (index $one "nodeSelector") (index $one "tolerations") (index $one "requiredNodeTerms"))) -}}
{{- if (not (hasKey $set_of $rules)) -}}
{{- $_ := set $set_of $rules (index $one "name") -}}
{{- end -}}
{{- end -}}
{{- $found := (list) -}}
{{- range $_, $profile := (include "roost.items" (list $root $singleuser "profileList") | fromJsonArray) -}}
{{- $use = (include "roost.overridden" (list $root $usual $profile) | fromJson) -}}
{{- range $_, $option := (include "roost.items" (list $root $profile "profile_options") | fromJsonArray) -}}
{{- $choices = (include "roost.items" (list $root $option "choices") | fromJsonArray) -}}
{{- $t1 := list -}}
{{- range $_, $choice := $choices -}}
{{- if (eq (toJson (include "roost.value" (list $root $choice "default") | fromJson).value) "true") -}}
{{- $t1 = append $t1 $choice -}}
{{- end -}}
{{- end -}}
{{- $choices = (concat $t1 $choices) -}}
{{- if $choices -}}
{{- $use = (include "roost.overridden" (list $root $use (index $choices 0)) | fromJson) -}}
{{- end -}}
{{- end -}}
{{- $rules = (toJson (list $use.node_selector $use.tolerations $use.required_terms)) -}}
{{- $names = (list (include "roost.value" (list $root $profile "display_name") | fromJson).value (include "roost.value" (list $root $profile "slug") | fromJson).value) -}}
{{- $found = append $found (dict "names" $names "image" $use.image "set" (index $set_of $rules)) -}}
{{- end -}}
{{- $found | toJson -}}
{{- end }}

{{- /* roost.dns_label (list $ name limit): roost_core/placement/labels.py */}}
{{- define "roost.dns_label" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $limit := 63 -}}
{{- if gt (len .) 2 }}{{ $limit = index . 2 }}{{ end -}}
{{- if (not (contains "." $name)) -}}
{{- (include "roost.shorten" (list $root $name $limit)) -}}
{{- else -}}
{{- (printf "%v-%v" (regexReplaceAll "[\\-\\._]+$" (trunc (sub $limit 9 | int) (replace "." "-" $name)) "") (include "roost.hash" (list $root $name))) -}}
{{- end -}}
{{- end }}

{{- /* roost.shorten (list $ name limit): roost_core/placement/labels.py */}}
{{- define "roost.shorten" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $limit := index . 2 -}}
{{- if (le (len $name) $limit) -}}
{{- $name -}}
{{- else -}}
{{- (printf "%v-%v" (regexReplaceAll "[\\-\\._]+$" (trunc (sub $limit 9 | int) $name) "") (include "roost.hash" (list $root $name))) -}}
{{- end -}}
{{- end }}

{{- /* roost.normalise_reference (list $ reference): roost_core/objects/image_references.py */}}
{{- define "roost.normalise_reference" -}}
{{- $root := index . 0 -}}
{{- $reference := index . 1 -}}
{{- $t1 := (include "roost.split_reference" (list $root $reference) | fromJsonArray) -}}
{{- $repository := (index $t1 0) -}}
{{- $tag := (index $t1 1) -}}
{{- $digest := (index $t1 2) -}}
{{- $t2 := $repository -}}
{{- $registry := (regexFind "^[^/]*" $t2) -}}
{{- $slash := (ternary "/" "" (contains "/" $t2)) -}}
{{- $path := (regexReplaceAll "^[^/]*/?" $t2 "") -}}
{{- if (and (eq $registry "index.docker.io") $slash) -}}
{{- $registry = "docker.io" -}}
{{- else -}}
{{- if (or (not $slash) (not (or (eq $registry "localhost") (regexMatch "[.:A-Z]" $registry)))) -}}
{{- $registry = "docker.io" -}}
{{- $path = $repository -}}
{{- end -}}
{{- end -}}
{{- if (and (eq $registry "docker.io") (not (contains "/" $path))) -}}
{{- $path = (printf "library/%v" $path) -}}
{{- end -}}
{{- $repository = (printf "%v/%v" $registry $path) -}}
{{- if $digest -}}
{{- (printf "%v@%v" $repository $digest) -}}
{{- else -}}
{{- (printf "%v:%v" $repository (or $tag "latest")) -}}
{{- end -}}
{{- end }}

{{- /* roost.short_name (list $ normalised): roost_core/objects/image_references.py */}}
{{- define "roost.short_name" -}}
{{- $root := index . 0 -}}
{{- $normalised := index . 1 -}}
{{- $t1 := $normalised -}}
{{- $t2 := (regexFind "[^/]*$" $t1) -}}
{{- $last := (regexFind "^[^@]*" $t2) -}}
{{- $name := (trimAll "-" (trunc 54 (regexReplaceAll "[^A-Za-z0-9]+" $last "-"))) -}}
{{- (or $name "image") -}}
{{- end }}

{{- /* roost.hash (list $ text): roost_core/placement/labels.py */}}
{{- define "roost.hash" -}}
{{- $root := index . 0 -}}
{{- $text := index . 1 -}}
{{- (trunc 8 (sha256sum $text)) -}}
{{- end }}

{{- /* roost.managed_images (list $ singleuser pre_puller): generator/render/managed_images.py */}}
{{- define "roost.managed_images" -}}
{{- $root := index . 0 -}}
{{- $singleuser := index . 1 -}}
{{- $pre_puller := index . 2 -}}
{{- $t1 := list -}}
{{- range $_, $group := (include "roost.puller_groups" (list $root $singleuser $pre_puller) | fromJsonArray) -}}
{{- range $_, $image := $group.images -}}
{{- $t1 = append $t1 (include "roost.normalise_reference" (list $root $image)) -}}
{{- end -}}
{{- end -}}
{{- (uniq $t1) | toJson -}}
{{- end }}

{{- /* roost.puller_groups (list $ singleuser pre_puller): generator/render/managed_images.py */}}
{{- define "roost.puller_groups" -}}
{{- $root := index . 0 -}}
{{- $singleuser := index . 1 -}}
{{- $pre_puller := index . 2 -}}
{{- $component := "" -}}
{{- $group := "" -}}
{{- $references := "" -}}
{{- $rules := "" -}}
{{- $selector := "" -}}
{{- $tolerations := "" -}}
{{- $uses := (include "roost.uses" (list $root $singleuser $pre_puller) | fromJsonArray) -}}
{{- if (not $uses) -}}
{{- (list) | toJson -}}
{{- else -}}
{{- $always := (or (include "roost.objects" (list $root (include "roost.value" (list $root $pre_puller "tolerations") | fromJson).value) | fromJson).value (list)) -}}
{{- $usual := (toJson (list (include "roost.tolerations" (list $root (index $uses 0) $always) | fromJsonArray) (index $uses 0).required_terms)) -}}
{{- $first := (list) -}}
{{- $others := (list) -}}
{{- $groups := (dict) -}}
{{- $images := (dict) -}}
{{- $seen := (dict) -}}
{{- range $_, $use := $uses -}}
{{- $t1 := "" -}}
{{- if $use.image -}}
{{- $t1 = (concat $use.containers (list $use.image)) -}}
{{- else -}}
{{- $t1 = $use.containers -}}
{{- end -}}
{{- $references = $t1 -}}
{{- if $references -}}
{{- $tolerations = (include "roost.tolerations" (list $root $use $always) | fromJsonArray) -}}
{{- $rules = (toJson (list $tolerations $use.required_terms)) -}}
{{- $t2 := "" -}}
{{- if (eq $rules $usual) -}}
{{- $t2 = "" -}}
{{- else -}}
{{- $t2 = $rules -}}
{{- end -}}
{{- $component = (include "roost.puller_component" (list $root $use.node_selector $t2)) -}}
{{- if (and (eq $rules $usual) (eq (toJson $use.node_selector) (toJson (index $uses 0).node_selector))) -}}
{{- $component = "puller" -}}
{{- end -}}
{{- if (not (hasKey $groups $component)) -}}
{{- if (eq $component "puller") -}}
{{- $first = append $first $component -}}
{{- else -}}
{{- $others = append $others $component -}}
{{- end -}}
{{- $_ := set $groups $component (dict "component" $component "node_selector" $use.node_selector "images" (list) "tolerations" $tolerations "required_terms" $use.required_terms) -}}
{{- $_ := set $images $component (list) -}}
{{- end -}}
{{- range $_, $reference := $references -}}
{{- if (not (hasKey $seen (printf "%v %v" $component $reference))) -}}
{{- $_ := set $seen (printf "%v %v" $component $reference) true -}}
{{- $_ := set $images $component (append (index $images $component) $reference) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $narrower := (include "roost.mapping" (list $root $pre_puller "nodeSelector") | fromJson) -}}
{{- $found := (list) -}}
{{- range $_, $component := (concat $first $others) -}}
{{- $group = (index $groups $component) -}}
{{- $selector = (include "roost.merged" (list $root $group.node_selector $narrower) | fromJson) -}}
{{- $found = append $found (set (set (deepCopy $group) "node_selector" $selector) "images" (include "roost.each_once" (list $root (index $images $component)) | fromJsonArray)) -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}
{{- end }}

{{- /* roost.uses (list $ singleuser pre_puller): generator/render/managed_images.py */}}
{{- define "roost.uses" -}}
{{- $root := index . 0 -}}
{{- $singleuser := index . 1 -}}
{{- $pre_puller := index . 2 -}}
{{- $choices := "" -}}
{{- $count := "" -}}
{{- $default := (include "roost.default_use" (list $root $singleuser) | fromJson) -}}
{{- $uses := (list $default) -}}
{{- $extra := (include "roost.items" (list $root $pre_puller "extraImages") | fromJsonArray) -}}
{{- $always := (len (toJson (include "roost.items" (list $root $pre_puller "tolerations") | fromJsonArray))) -}}
{{- $left := (sub (sub 8388608 (mul $always (len $extra) | int) | int) (mul (include "roost.bytes_of" (list $root (list $default)) | int) (len $extra) | int) | int) -}}
{{- if (ne (toJson (include "roost.value" (list $root $pre_puller "pullProfileListImages") | fromJson).value) "false") -}}
{{- range $_, $profile := (include "roost.items" (list $root $singleuser "profileList") | fromJsonArray) -}}
{{- if (gt $left 0) -}}
{{- $choices = (list (include "roost.overridden" (list $root $default $profile) | fromJson)) -}}
{{- range $_, $option := (include "roost.items" (list $root $profile "profile_options") | fromJsonArray) -}}
{{- $count = (len (include "roost.items" (list $root $option "choices") | fromJsonArray)) -}}
{{- $left = (sub (sub $left (mul (len (toJson $option)) (len $choices) | int) | int) (mul (include "roost.bytes_of" (list $root $choices) | int) $count | int) | int) -}}
{{- $left = (sub $left (mul (mul 256 (len $choices) | int) $count | int) | int) -}}
{{- if (gt $left 0) -}}
{{- $choices = (include "roost.chosen" (list $root $choices $option) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- $left = (sub (sub $left (mul $always (len $choices) | int) | int) (include "roost.bytes_of" (list $root $choices) | int) | int) -}}
{{- $uses = (concat $uses $choices) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if (le $left 0) -}}
{{- (list) | toJson -}}
{{- else -}}
{{- $t1 := list -}}
{{- range $_, $image := $extra -}}
{{- $t1 = append $t1 (set (deepCopy $default) "image" (include "roost.named_image" (list $root $image))) -}}
{{- end -}}
{{- (concat $uses $t1) | toJson -}}
{{- end -}}
{{- end }}

{{- /* roost.default_use (list $ singleuser): generator/render/managed_images.py */}}
{{- define "roost.default_use" -}}
{{- $root := index . 0 -}}
{{- $singleuser := index . 1 -}}
{{- $extended := (list) -}}
{{- range $_, $key := (list "limits" "guarantees") -}}
{{- $extended = (include "roost.asked" (list $root $extended (include "roost.mapping" (list $root (include "roost.mapping" (list $root $singleuser "extraResource") | fromJson) $key) | fromJson)) | fromJsonArray) -}}
{{- end -}}
{{- $network_tools := (include "roost.named_image" (list $root (include "roost.mapping" (list $root (include "roost.mapping" (list $root $singleuser "networkTools") | fromJson) "image") | fromJson))) -}}
{{- $own := (include "roost.items" (list $root $singleuser "initContainers") | fromJsonArray) -}}
{{- $extra := (include "roost.items" (list $root $singleuser "extraContainers") | fromJsonArray) -}}
{{- $containers := (include "roost.with_images" (list $root (list) (concat $own (list (dict "image" $network_tools)) $extra)) | fromJsonArray) -}}
{{- $required := (include "roost.value" (list $root (include "roost.mapping" (list $root $singleuser "extraNodeAffinity") | fromJson) "required") | fromJson).value -}}
{{- (dict "image" (include "roost.named_image" (list $root (include "roost.mapping" (list $root $singleuser "image") | fromJson))) "node_selector" (include "roost.merged" (list $root (dict) (include "roost.mapping" (list $root $singleuser "nodeSelector") | fromJson)) | fromJson) "tolerations" (or (include "roost.objects" (list $root (include "roost.value" (list $root $singleuser "extraTolerations") | fromJson).value) | fromJson).value (list)) "required_terms" (or (include "roost.objects" (list $root $required) | fromJson).value (list)) "extended" $extended "containers" $containers) | toJson -}}
{{- end }}

{{- /* roost.mapping (list $ parent key): generator/render/managed_images.py */}}
{{- define "roost.mapping" -}}
{{- $root := index . 0 -}}
{{- $parent := index . 1 -}}
{{- $key := index . 2 -}}
{{- $value := (include "roost.value" (list $root $parent $key) | fromJson).value -}}
{{- $t1 := "" -}}
{{- if (kindIs "map" $value) -}}
{{- $t1 = $value -}}
{{- else -}}
{{- $t1 = (dict) -}}
{{- end -}}
{{- $t1 | toJson -}}
{{- end }}

{{- /* roost.merged (list $ selector over): generator/render/managed_images.py */}}
{{- define "roost.merged" -}}
{{- $root := index . 0 -}}
{{- $selector := index . 1 -}}
{{- $over := index . 2 -}}
{{- $merged := (deepCopy $selector) -}}
{{- if (kindIs "map" $over) -}}
{{- range $key, $value := $over -}}
{{- if (kindIs "invalid" $value) -}}
{{- $_ := unset $merged $key -}}
{{- else -}}
{{- if (kindIs "string" $value) -}}
{{- $_ := set $merged $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $merged | toJson -}}
{{- end }}

{{- /* roost.value (list $ parent key): generator/render/managed_images.py */}}
{{- define "roost.value" -}}
{{- $root := index . 0 -}}
{{- $parent := index . 1 -}}
{{- $key := index . 2 -}}
{{- if (kindIs "map" $parent) -}}
{{- (dict "value" (index $parent $key)) | toJson -}}
{{- else -}}
{{- (dict "value" nil) | toJson -}}
{{- end -}}
{{- end }}

{{- /* roost.objects (list $ value): generator/render/managed_images.py */}}
{{- define "roost.objects" -}}
{{- $root := index . 0 -}}
{{- $value := index . 1 -}}
{{- if (not (kindIs "slice" $value)) -}}
{{- (dict "value" nil) | toJson -}}
{{- else -}}
{{- $t1 := list -}}
{{- range $_, $entry := $value -}}
{{- if (kindIs "map" $entry) -}}
{{- $t1 = append $t1 $entry -}}
{{- end -}}
{{- end -}}
{{- (dict "value" $t1) | toJson -}}
{{- end -}}
{{- end }}

{{- /* roost.items (list $ parent key): generator/render/managed_images.py */}}
{{- define "roost.items" -}}
{{- $root := index . 0 -}}
{{- $parent := index . 1 -}}
{{- $key := index . 2 -}}
{{- $value := (include "roost.value" (list $root $parent $key) | fromJson).value -}}
{{- if (kindIs "map" $value) -}}
{{- $t1 := list -}}
{{- range $name, $_ := $value -}}
{{- $t1 = append $t1 (index $value $name) -}}
{{- end -}}
{{- $t1 | toJson -}}
{{- else -}}
{{- $t2 := "" -}}
{{- if (kindIs "slice" $value) -}}
{{- $t2 = $value -}}
{{- else -}}
{{- $t2 = (list) -}}
{{- end -}}
{{- $t2 | toJson -}}
{{- end -}}
{{- end }}

{{- /* roost.overridden (list $ use holder): generator/render/managed_images.py */}}
{{- define "roost.overridden" -}}
{{- $root := index . 0 -}}
{{- $use := index . 1 -}}
{{- $holder := index . 2 -}}
{{- $override := (include "roost.mapping" (list $root $holder "kubespawner_override") | fromJson) -}}
{{- $image := (index $override "image") -}}
{{- if (has (toJson $image) (list "null" "\"\"")) -}}
{{- $image = $use.image -}}
{{- else -}}
{{- if (or (not (kindIs "string" $image)) (contains "{" $image)) -}}
{{- $image = "" -}}
{{- end -}}
{{- end -}}
{{- $tolerations := (include "roost.objects" (list $root (index $override "tolerations")) | fromJson).value -}}
{{- $terms := (include "roost.objects" (list $root (index $override "node_affinity_required")) | fromJson).value -}}
{{- $extended := $use.extended -}}
{{- $containers := $use.containers -}}
{{- range $_, $key := (list "extra_resource_limits" "extra_resource_guarantees") -}}
{{- $extended = (include "roost.asked" (list $root $extended (include "roost.mapping" (list $root $override $key) | fromJson)) | fromJsonArray) -}}
{{- end -}}
{{- range $_, $key := (list "init_containers" "extra_containers") -}}
{{- $containers = (include "roost.with_images" (list $root $containers (include "roost.items" (list $root $override $key) | fromJsonArray)) | fromJsonArray) -}}
{{- end -}}
{{- $t1 := "" -}}
{{- if (kindIs "invalid" $tolerations) -}}
{{- $t1 = $use.tolerations -}}
{{- else -}}
{{- $t1 = $tolerations -}}
{{- end -}}
{{- $t2 := "" -}}
{{- if (kindIs "invalid" $terms) -}}
{{- $t2 = $use.required_terms -}}
{{- else -}}
{{- $t2 = $terms -}}
{{- end -}}
{{- (dict "image" $image "node_selector" (include "roost.merged" (list $root $use.node_selector (index $override "node_selector")) | fromJson) "tolerations" $t1 "required_terms" $t2 "extended" $extended "containers" $containers) | toJson -}}
{{- end }}

{{- /* roost.split_reference (list $ reference): roost_core/objects/image_references.py */}}
{{- define "roost.split_reference" -}}
{{- $root := index . 0 -}}
{{- $reference := index . 1 -}}
{{- $t1 := $reference -}}
{{- $named := (regexFind "^[^@]*" $t1) -}}
{{- $digest := (regexReplaceAll "^[^@]*@?" $t1 "") -}}
{{- $t2 := $named -}}
{{- $head := (regexReplaceAll "/?[^/]*$" $t2 "") -}}
{{- $slash := (ternary "/" "" (contains "/" $t2)) -}}
{{- $last := (regexFind "[^/]*$" $t2) -}}
{{- $t3 := $last -}}
{{- $name := (regexFind "^[^:]*" $t3) -}}
{{- $tag := (regexReplaceAll "^[^:]*:?" $t3 "") -}}
{{- (list (printf "%v%v%v" $head $slash $name) $tag $digest) | toJson -}}
{{- end }}

{{- /* roost.tolerations (list $ use always): generator/render/managed_images.py */}}
{{- define "roost.tolerations" -}}
{{- $root := index . 0 -}}
{{- $use := index . 1 -}}
{{- $always := index . 2 -}}
{{- $t1 := list -}}
{{- range $_, $name := $use.extended -}}
{{- $t1 = append $t1 (dict "key" $name "operator" "Exists") -}}
{{- end -}}
{{- $named := $t1 -}}
{{- $found := (list) -}}
{{- $seen := (dict) -}}
{{- range $_, $toleration := (concat $always $use.tolerations $named) -}}
{{- if (not (hasKey $seen (toJson $toleration))) -}}
{{- $_ := set $seen (toJson $toleration) true -}}
{{- $found = append $found $toleration -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end }}

{{- /* roost.each_once (list $ references): generator/render/managed_images.py */}}
{{- define "roost.each_once" -}}
{{- $root := index . 0 -}}
{{- $references := index . 1 -}}
{{- $normalised := "" -}}
{{- $found := (list) -}}
{{- $seen := (dict) -}}
{{- range $_, $reference := $references -}}
{{- $normalised = (include "roost.normalise_reference" (list $root $reference)) -}}
{{- if (not (hasKey $seen $normalised)) -}}
{{- $_ := set $seen $normalised true -}}
{{- $found = append $found $reference -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end }}

{{- /* roost.bytes_of (list $ uses): generator/render/managed_images.py */}}
{{- define "roost.bytes_of" -}}
{{- $root := index . 0 -}}
{{- $uses := index . 1 -}}
{{- $t1 := list -}}
{{- range $_, $use := $uses -}}
{{- $t1 = append $t1 $use -}}
{{- end -}}
{{- (len (toJson $t1)) | toJson -}}
{{- end }}

{{- /* roost.chosen (list $ uses option): generator/render/managed_images.py */}}
{{- define "roost.chosen" -}}
{{- $root := index . 0 -}}
{{- $uses := index . 1 -}}
{{- $option := index . 2 -}}
{{- $after := "" -}}
{{- $written := "" -}}
{{- $choices := (include "roost.items" (list $root $option "choices") | fromJsonArray) -}}
{{- if (not $choices) -}}
{{- $uses | toJson -}}
{{- else -}}
{{- $unlisted := (include "roost.mapping" (list $root $option "unlisted_choice") | fromJson) -}}
{{- if (eq (toJson (index $unlisted "enabled")) "true") -}}
{{- $choices = (concat $choices (list $unlisted)) -}}
{{- end -}}
{{- $made := (list) -}}
{{- $seen := (dict) -}}
{{- range $_, $choice := $choices -}}
{{- range $_, $use := $uses -}}
{{- $after = (include "roost.overridden" (list $root $use $choice) | fromJson) -}}
{{- $written = (toJson $after) -}}
{{- if (not (hasKey $seen $written)) -}}
{{- $_ := set $seen $written true -}}
{{- $made = append $made $after -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $made | toJson -}}
{{- end -}}
{{- end }}

{{- /* roost.named_image (list $ image): generator/render/managed_images.py */}}
{{- define "roost.named_image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- if (not (kindIs "map" $image)) -}}
{{- "" -}}
{{- else -}}
{{- $name := (index $image "name") -}}
{{- $tag := (index $image "tag") -}}
{{- if (or (not (kindIs "string" $name)) (not $name)) -}}
{{- "" -}}
{{- else -}}
{{- $t1 := "" -}}
{{- if (has (toJson $tag) (list "null" "\"\"")) -}}
{{- $t1 = $name -}}
{{- else -}}
{{- $t1 = (printf "%v:%v" $name $tag) -}}
{{- end -}}
{{- $t1 -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* roost.asked (list $ names amounts): generator/render/managed_images.py */}}
{{- define "roost.asked" -}}
{{- $root := index . 0 -}}
{{- $names := index . 1 -}}
{{- $amounts := index . 2 -}}
{{- $asked := (dict) -}}
{{- range $_, $one := $names -}}
{{- $_ := set $asked $one true -}}
{{- end -}}
{{- range $name, $amount := $amounts -}}
{{- if (and (kindIs "string" $name) (contains "/" $name)) -}}
{{- $_ := unset $asked $name -}}
{{- if (not (has (toJson $amount) (list "null" "0" "\"0\""))) -}}
{{- $_ := set $asked $name true -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- (keys $asked | sortAlpha) | toJson -}}
{{- end }}

{{- /* roost.with_images (list $ images containers): generator/render/managed_images.py */}}
{{- define "roost.with_images" -}}
{{- $root := index . 0 -}}
{{- $images := index . 1 -}}
{{- $containers := index . 2 -}}
{{- $named := "" -}}
{{- $found := (list) -}}
{{- $seen := (dict) -}}
{{- range $_, $container := (concat $images $containers) -}}
{{- $t1 := "" -}}
{{- if (kindIs "map" $container) -}}
{{- $t1 = (index $container "image") -}}
{{- else -}}
{{- $t1 = $container -}}
{{- end -}}
{{- $named = $t1 -}}
{{- if (and (kindIs "string" $named) $named (not (contains "{" $named)) (not (hasKey $seen $named))) -}}
{{- $_ := set $seen $named true -}}
{{- $found = append $found $named -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end }}
