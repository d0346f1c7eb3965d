{{/*
selectorLabels pick the pods of one Memcached. They can never change: a Deployment's selector is immutable. memcached_cr
keeps the pods of two custom resources apart.
*/}}
{{- define "memcached.selectorLabels" -}}
app: memcached
memcached_cr: {{ .Release.Name | quote }}
{{- end }}

{{/*
labels are the selector's and the recommended ones. None names a version: it would restart every server for a label.
*/}}
{{- define "memcached.labels" -}}
{{ include "memcached.selectorLabels" . }}
app.kubernetes.io/name: memcached
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: cache
{{- end }}
