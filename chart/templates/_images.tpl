{{- /*
Which images the puller brings to which nodes, written by hand: twins of the functions of
generator/render/managed_images.py and functions.py, which say why. tests/parity/test_helpers.py holds them together.

What is missing, null or malformed is ignored: a profile list may contain whatever KubeSpawner accepts.
A use is a dict: an image ("": none that can be known), what its users' pods run beside it, and where they may go. The
lengths of uses as JSON are counted: their keys are those of the twin.
*/}}

{{- /* roost.pullers (list $ SINGLEUSER PREPULLER): as JSON, each DaemonSet of the puller. */}}
{{- define "roost.pullers" -}}
{{- $root := index . 0 -}}
{{- $pullers := list -}}
{{- range $group := include "roost.puller_groups" (rest .) | fromJsonArray -}}
{{- $name := include "roost.object_name" (list $root $group.component) -}}
{{- $pullers = append $pullers (set (omit $group "component") "name" $name) -}}
{{- end -}}
{{- toJson $pullers -}}
{{- end }}

{{- /* roost.pulled_labels (list $ SINGLEUSER PREPULLER): as JSON, the node label of each image that the puller brings, by
   each way to write that image. */}}
{{- define "roost.pulled_labels" -}}
{{- $root := index . 0 -}}
{{- $labels := dict -}}
{{- range $group := include "roost.puller_groups" (rest .) | fromJsonArray -}}
{{- range $image := $group.images -}}
{{- $full := include "roost.normalise_reference" $image -}}
{{- if not (hasKey $labels $full) -}}
{{- $label := include "roost.pulled_label" (list $root $full) -}}
{{- $path := trimPrefix "docker.io/" $full -}}
{{- range $form := list $full $path (trimPrefix "library/" $path) -}}
{{- range $prefix := list "" "docker.io/" "index.docker.io/" -}}
{{- $written := print $prefix $form -}}
{{- /* A part that looks like a registry can't lose its own: docker.io/a.b/c isn't a.b/c. */ -}}
{{- if eq (include "roost.normalise_reference" $written) $full -}}
{{- $_ := set $labels $written $label -}}
{{- $_ := set $labels (trimSuffix ":latest" $written) $label -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $labels -}}
{{- end }}

{{- /* roost.profile_seats (list $ SINGLEUSER DEFAULTS SETS): as JSON, each profile, as its default choices make it: its
   two names, its image and which set is for its nodes. */}}
{{- define "roost.profile_seats" -}}
{{- $singleuser := index . 1 -}}
{{- $defaults := index . 2 -}}
{{- $usual := include "roost.default_use" $singleuser | fromJson -}}
{{- $selector := include "roost.mapping" (list $defaults "nodeSelector") | fromJson -}}
{{- $_ := set $usual "node_selector" (include "roost.merged" (list dict $selector) | fromJson) -}}
{{- $_ := set $usual "tolerations" (include "roost.objects" (list $defaults "tolerations") | default "[]" | fromJsonArray) -}}
{{- $_ := set $usual "required_terms" (include "roost.objects" (list $defaults "requiredNodeTerms") | default "[]" | fromJsonArray) -}}
{{- $set_of := dict -}}
{{- range $set := index . 3 -}}
{{- $rules := list (index $set "nodeSelector") (index $set "tolerations") (index $set "requiredNodeTerms") | toJson -}}
{{- if not (hasKey $set_of $rules) }}{{ $_ := set $set_of $rules (index $set "name") }}{{ end -}}
{{- end -}}
{{- $seats := list -}}
{{- range $profile := include "roost.items" (list $singleuser "profileList") | fromJsonArray -}}
{{- $use := include "roost.overridden" (list $usual $profile) | fromJson -}}
{{- range $option := include "roost.items" (list $profile "profile_options") | fromJsonArray -}}
{{- $choices := include "roost.items" (list $option "choices") | fromJsonArray -}}
{{- $default_choices := list -}}
{{- range $choice := $choices -}}
{{- if eq (include "roost.at" (list $choice "default")) `{"value":true}` }}{{ $default_choices = append $default_choices $choice }}{{ end -}}
{{- end -}}
{{- with concat $default_choices $choices -}}
{{- $use = include "roost.overridden" (list $use (first .)) | fromJson -}}
{{- end -}}
{{- end -}}
{{- $rules := list $use.node_selector $use.tolerations $use.required_terms | toJson -}}
{{- $display := (include "roost.at" (list $profile "display_name") | fromJson).value -}}
{{- $slug := (include "roost.at" (list $profile "slug") | fromJson).value -}}
{{- $seats = append $seats (dict "names" (list $display $slug) "image" $use.image "set" (index $set_of $rules)) -}}
{{- end -}}
{{- toJson $seats -}}
{{- end }}

{{- /* roost.puller_groups (list SINGLEUSER PREPULLER): as JSON, which images go to which nodes; the nodes that every user may
   use come first. */}}
{{- define "roost.puller_groups" -}}
{{- $pre_puller := index . 1 -}}
{{- $uses := include "roost.uses" . | fromJsonArray -}}
{{- $always := include "roost.objects" (list $pre_puller "tolerations") | default "[]" | fromJsonArray -}}
{{- $narrower := include "roost.mapping" (list $pre_puller "nodeSelector") | fromJson -}}
{{- $usual_rules := "" -}}
{{- $usual_selector := "" -}}
{{- $first := list -}}
{{- $others := list -}}
{{- $groups := dict -}}
{{- $images := dict -}}
{{- $seen := dict -}}
{{- range $number, $use := $uses -}}
{{- $tolerations := include "roost.tolerations" (list $use $always) | fromJsonArray -}}
{{- $rules := list $tolerations $use.required_terms | toJson -}}
{{- $selector := toJson $use.node_selector -}}
{{- if eq $number 0 -}}
{{- $usual_rules = $rules -}}
{{- $usual_selector = $selector -}}
{{- end -}}
{{- /* In the order of their start. */ -}}
{{- $references := $use.containers -}}
{{- if $use.image }}{{ $references = append $references $use.image }}{{ end -}}
{{- if $references -}}
{{- $component := include "roost.puller_component" (list $use.node_selector (ternary "" $rules (eq $rules $usual_rules))) -}}
{{- if and (eq $rules $usual_rules) (eq $selector $usual_selector) }}{{ $component = "puller" }}{{ end -}}
{{- if not (hasKey $groups $component) -}}
{{- if eq $component "puller" }}{{ $first = list $component }}{{ else }}{{ $others = append $others $component }}{{ end -}}
{{- $merged := include "roost.merged" (list $use.node_selector $narrower) | fromJson -}}
{{- $group := dict "component" $component "nodeSelector" $merged "tolerations" $tolerations "requiredNodeTerms" $use.required_terms -}}
{{- $_ := set $groups $component $group -}}
{{- $_ := set $images $component list -}}
{{- end -}}
{{- range $reference := $references -}}
{{- $key := printf "%s %s" $component $reference -}}
{{- if not (hasKey $seen $key) -}}
{{- $_ := set $seen $key true -}}
{{- $_ := set $images $component (append (index $images $component) $reference) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found := list -}}
{{- range $component := concat $first $others -}}
{{- $each_once := include "roost.each_once" (index $images $component) | fromJsonArray -}}
{{- $found = append $found (set (index $groups $component) "images" $each_once) -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* roost.uses (list SINGLEUSER PREPULLER): as JSON, every image with the nodes it is for, in order of use; none at all where
   they come to more than 8 MiB. Each choice takes the time of 256 bytes, however little it says. */}}
{{- define "roost.uses" -}}
{{- $singleuser := index . 0 -}}
{{- $pre_puller := index . 1 -}}
{{- $default := include "roost.default_use" $singleuser | fromJson -}}
{{- $uses := list $default -}}
{{- $extra := include "roost.items" (list $pre_puller "extraImages") | fromJsonArray -}}
{{- $always := include "roost.items" (list $pre_puller "tolerations") | len -}}
{{- $left := sub 8388608 (mul (len $extra) (add $always (list $default | toJson | len))) -}}
{{- $is_pulled := include "roost.at" (list $pre_puller "pullProfileListImages") -}}
{{- if ne $is_pulled `{"value":false}` -}}
{{- range $profile := include "roost.items" (list $singleuser "profileList") | fromJsonArray -}}
{{- if gt $left 0 -}}
{{- $choices := list (include "roost.overridden" (list $default $profile) | fromJson) -}}
{{- range $option := include "roost.items" (list $profile "profile_options") | fromJsonArray -}}
{{- $count := include "roost.items" (list $option "choices") | fromJsonArray | len -}}
{{- $bytes := add (toJson $option | len | mul (len $choices)) (toJson $choices | len | mul $count) (mul 256 (len $choices) $count) -}}
{{- $left = sub $left $bytes -}}
{{- if gt $left 0 }}{{ $choices = include "roost.chosen" (list $choices $option) | fromJsonArray }}{{ end -}}
{{- end -}}
{{- $left = sub $left (add (mul $always (len $choices)) (toJson $choices | len)) -}}
{{- $uses = concat $uses $choices -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $image := $extra -}}
{{- $uses = append $uses (set (deepCopy $default) "image" (include "roost.named_image" $image)) -}}
{{- end -}}
{{- ternary $uses list (gt $left 0) | toJson -}}
{{- end }}

{{- /* roost.default_use SINGLEUSER: as JSON, what a user has who chooses nothing. */}}
{{- define "roost.default_use" -}}
{{- $extended := list -}}
{{- range $key := list "limits" "guarantees" -}}
{{- $amounts := include "roost.mapping" (list $ "extraResource" $key) | fromJson -}}
{{- $extended = include "roost.asked" (list $extended $amounts) | fromJsonArray -}}
{{- end -}}
{{- $own := include "roost.items" (list . "initContainers") | fromJsonArray -}}
{{- $network_tools := include "roost.mapping" (list . "networkTools" "image") | fromJson | include "roost.named_image" -}}
{{- $extra := include "roost.items" (list . "extraContainers") | fromJsonArray -}}
{{- $containers := include "roost.with_images" (list list (concat $own (list $network_tools) $extra)) | fromJsonArray -}}
{{- $image := include "roost.mapping" (list . "image") | fromJson | include "roost.named_image" -}}
{{- $selector := include "roost.mapping" (list . "nodeSelector") | fromJson -}}
{{- $selector = include "roost.merged" (list dict $selector) | fromJson -}}
{{- $tolerations := include "roost.objects" (list . "extraTolerations") | default "[]" | fromJsonArray -}}
{{- $terms := include "roost.objects" (list . "extraNodeAffinity" "required") | default "[]" | fromJsonArray -}}
{{- dict "image" $image "node_selector" $selector "tolerations" $tolerations "required_terms" $terms "extended" $extended "containers" $containers | toJson -}}
{{- end }}

{{- /* roost.overridden (list USE HOLDER): as JSON, what `kubespawner_override` of a profile or a choice makes of a use.
   KubeSpawner merges dictionaries and replaces lists. */}}
{{- define "roost.overridden" -}}
{{- $use := deepCopy (index . 0) -}}
{{- $override := include "roost.mapping" (list (index . 1) "kubespawner_override") | fromJson -}}
{{- $image := index $override "image" -}}
{{- if not (has (toJson $image) (list "null" `""`)) -}}
{{- /* `{value}` stands in a template for what the user types: nobody can pull that beforehand. */ -}}
{{- $is_known := and (kindIs "string" $image) (not (contains "{" $image)) -}}
{{- $_ := set $use "image" (ternary $image "" $is_known) -}}
{{- end -}}
{{- $selector := index $override "node_selector" -}}
{{- $_ := set $use "node_selector" (include "roost.merged" (list $use.node_selector $selector) | fromJson) -}}
{{- with include "roost.objects" (list $override "tolerations") }}{{ $_ := set $use "tolerations" (fromJsonArray .) }}{{ end -}}
{{- with include "roost.objects" (list $override "node_affinity_required") }}{{ $_ := set $use "required_terms" (fromJsonArray .) }}{{ end -}}
{{- range $key := list "extra_resource_limits" "extra_resource_guarantees" -}}
{{- $amounts := include "roost.mapping" (list $override $key) | fromJson -}}
{{- $_ := set $use "extended" (include "roost.asked" (list $use.extended $amounts) | fromJsonArray) -}}
{{- end -}}
{{- range $key := list "init_containers" "extra_containers" -}}
{{- $containers := include "roost.items" (list $override $key) | fromJsonArray -}}
{{- $_ := set $use "containers" (include "roost.with_images" (list $use.containers $containers) | fromJsonArray) -}}
{{- end -}}
{{- toJson $use -}}
{{- end }}

{{- /* roost.chosen (list USES OPTION): as JSON, what an option makes of uses: KubeSpawner always applies one of its choices,
   or what the user types. */}}
{{- define "roost.chosen" -}}
{{- $uses := index . 0 -}}
{{- $option := index . 1 -}}
{{- $choices := include "roost.items" (list $option "choices") | fromJsonArray -}}
{{- if $choices -}}
{{- $unlisted := include "roost.mapping" (list $option "unlisted_choice") | fromJson -}}
{{- if eq (index $unlisted "enabled" | toJson) "true" }}{{ $choices = append $choices $unlisted }}{{ end -}}
{{- $made := list -}}
{{- range $choice := $choices -}}
{{- range $use := $uses }}{{ $made = append $made (include "roost.overridden" (list $use $choice) | fromJson) }}{{ end -}}
{{- end -}}
{{- include "roost.unique" $made -}}
{{- else -}}
{{- toJson $uses -}}
{{- end -}}
{{- end }}

{{- /* roost.tolerations (list USE ALWAYS): as JSON, what the puller of a use tolerates. Where the API server's
   ExtendedResourceToleration is on, a pod that asks for a resource tolerates taints of that key. */}}
{{- define "roost.tolerations" -}}
{{- $use := index . 0 -}}
{{- $tolerations := concat (index . 1) $use.tolerations -}}
{{- range $name := $use.extended -}}
{{- $tolerations = append $tolerations (dict "key" $name "operator" "Exists") -}}
{{- end -}}
{{- include "roost.unique" $tolerations -}}
{{- end }}

{{- /* roost.asked (list NAMES AMOUNTS): as JSON, names of extended resources with those that AMOUNTS asks for; null and 0
   take a name away. */}}
{{- define "roost.asked" -}}
{{- $asked := dict -}}
{{- range $name := index . 0 }}{{ $_ := set $asked $name true }}{{ end -}}
{{- range $name, $amount := index . 1 -}}
{{- if contains "/" $name -}}
{{- if has (toJson $amount) (list "null" "0" `"0"`) }}{{ $_ := unset $asked $name }}{{ else }}{{ $_ := set $asked $name true }}{{ end -}}
{{- end -}}
{{- end -}}
{{- keys $asked | sortAlpha | toJson -}}
{{- end }}

{{- /* roost.with_images (list IMAGES CONTAINERS): as JSON, images, then those of the containers that can be known. A
   container is a map, or its image. */}}
{{- define "roost.with_images" -}}
{{- $images := list -}}
{{- range $container := concat (index . 0) (index . 1) -}}
{{- $image := $container -}}
{{- if kindIs "map" $container }}{{ $image = index $container "image" }}{{ end -}}
{{- if and (kindIs "string" $image) $image (not (contains "{" $image)) }}{{ $images = append $images $image }}{{ end -}}
{{- end -}}
{{- include "roost.unique" $images -}}
{{- end }}

{{- /* roost.named_image IMAGE: `{name, tag}` as one reference; "" where it names none. */}}
{{- define "roost.named_image" -}}
{{- if kindIs "map" . -}}
{{- $name := index . "name" -}}
{{- $tag := index . "tag" -}}
{{- if and (kindIs "string" $name) $name -}}
{{- if has (toJson $tag) (list "null" `""`) }}{{ $name }}{{ else }}{{ printf "%s:%v" $name $tag }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* roost.each_once IMAGES: as JSON, the first reference of each image. */}}
{{- define "roost.each_once" -}}
{{- $seen := dict -}}
{{- $found := list -}}
{{- range $reference := . -}}
{{- $image := include "roost.normalise_reference" $reference -}}
{{- if not (hasKey $seen $image) }}{{ $found = append $found $reference }}{{ end -}}
{{- $_ := set $seen $image true -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* roost.unique ENTRIES: as JSON, each entry once. Sprig's uniq compares each with each. */}}
{{- define "roost.unique" -}}
{{- $seen := dict -}}
{{- $found := list -}}
{{- range $entry := . -}}
{{- $written := toJson $entry -}}
{{- if not (hasKey $seen $written) }}{{ $found = append $found $entry }}{{ end -}}
{{- $_ := set $seen $written true -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* roost.merged (list SELECTOR OVER): as JSON, KubeSpawner's merge of dictionaries: null deletes. A value that is not text
   cannot be a label, and is skipped. */}}
{{- define "roost.merged" -}}
{{- $merged := deepCopy (index . 0) -}}
{{- $over := index . 1 -}}
{{- if kindIs "map" $over -}}
{{- range $key, $value := $over -}}
{{- if kindIs "invalid" $value }}{{ $_ := unset $merged $key }}{{ end -}}
{{- if kindIs "string" $value }}{{ $_ := set $merged $key $value }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson $merged -}}
{{- end }}

{{- /* roost.mapping (list PARENT KEY …): as JSON, the map that stands there, else an empty one. */}}
{{- define "roost.mapping" -}}
{{- $found := (include "roost.at" . | fromJson).value -}}
{{- ternary $found dict (kindIs "map" $found) | toJson -}}
{{- end }}

{{- /* roost.items (list PARENT KEY …): as JSON, the entries of the list that stands there, or of the map by its keys: newer
   charts key their profiles by name. */}}
{{- define "roost.items" -}}
{{- $found := (include "roost.at" . | fromJson).value -}}
{{- $items := list -}}
{{- if or (kindIs "map" $found) (kindIs "slice" $found) -}}
{{- range $item := $found }}{{ $items = append $items $item }}{{ end -}}
{{- end -}}
{{- toJson $items -}}
{{- end }}

{{- /* roost.objects (list PARENT KEY …): as JSON, those entries of the list that stands there that are maps; nothing where
   no list stands. */}}
{{- define "roost.objects" -}}
{{- $found := (include "roost.at" . | fromJson).value -}}
{{- if kindIs "slice" $found -}}
{{- $objects := list -}}
{{- range $entry := $found }}{{ if kindIs "map" $entry }}{{ $objects = append $objects $entry }}{{ end }}{{ end -}}
{{- toJson $objects -}}
{{- end -}}
{{- end }}

{{- /* roost.at (list PARENT KEY …): as JSON, the one key `value`: what stands there, or null. */}}
{{- define "roost.at" -}}
{{- $found := dict "value" (first .) -}}
{{- range $key := rest . -}}
{{- if kindIs "map" $found.value -}}
{{- $found = dict "value" (index $found.value $key) -}}
{{- else -}}
{{- $found = dict "value" nil -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}
