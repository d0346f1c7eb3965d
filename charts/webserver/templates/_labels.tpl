{{/*
selectorLabels pick the pods of one WebServer. They can never change: a Deployment's selector is immutable.
*/}}
{{- define "webserver.selectorLabels" -}}
app.kubernetes.io/name: webserver
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/*
labels are the selector's and the recommended ones. None names a version: it would restart every server for a label.
*/}}
{{- define "webserver.labels" -}}
{{ include "webserver.selectorLabels" . }}
app.kubernetes.io/component: server
{{- end }}
