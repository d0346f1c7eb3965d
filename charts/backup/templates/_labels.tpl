{{/*
labels are the recommended ones. None names a version: it would change every object for a label.
*/}}
{{- define "backup.labels" -}}
app.kubernetes.io/name: backup
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: backup
{{- end }}
