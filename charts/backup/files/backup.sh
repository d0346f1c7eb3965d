#!/bin/sh
# Makes one backup of the volumes below $BACKUP_SOURCE in an S3 bucket, and then removes those that are too old:
#
#   $BACKUP_BUCKET/$BACKUP_FOLDER/2026-01-31T02-00-00Z/<claim>/…   the files of one volume
#   $BACKUP_BUCKET/$BACKUP_FOLDER/2026-01-31T02-00-00Z/complete    written last: a folder without it is no backup
#
# Everything that a user chooses comes in the environment, the settings of rclone's remote "s3:" included
# (RCLONE_CONFIG_S3_… and AWS_…). A failure ends in one line that says what is wrong and what to do; the exit code is
# 1 where another attempt may succeed, and 2 where somebody must act first.
set -eu
export LC_ALL=C

folder=s3:$BACKUP_BUCKET/$BACKUP_FOLDER
server=${RCLONE_CONFIG_S3_ENDPOINT:-AWS}
unfinished=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

main() {
  now=$(date -u +%s)
  backup=$(name "$now")
  : >"$BACKUP_TERMINATION_LOG"

  # Without directory markers a folder that is not there yet is an empty one, so that only a bucket can be missing. Few
  # retries: a wrong setting does not mend itself.
  say "Looking at $folder"
  try lsf --dirs-only --s3-directory-markers=false --retries 1 --low-level-retries 2 --contimeout 15s "$folder" || give_up
  sed 's|/$||' "$work/out" | grep -E "$pattern" | sort >"$work/folders"
  remove_unfinished $((now - BACKUP_DEADLINE_SECONDS))

  say "Copying the volumes to $backup"
  unfinished=$folder/$backup
  set -- "$BACKUP_SOURCE" "$folder/$backup" --links --exclude '/*/lost+found/**'
  case $BACKUP_CHANGING_FILES in
  Accept) try copy "$@" --metadata --create-empty-src-dirs --local-no-check-updated ;;
  *) try copy "$@" --metadata --create-empty-src-dirs ;;
  esac || give_up

  say "Comparing $backup with the volumes"
  case $BACKUP_CHANGING_FILES in
  Accept) try check "$@" --one-way --min-age "$(date_of "$now" %Y-%m-%dT%H:%M:%SZ)" ;;
  *) try check "$@" --one-way ;;
  esac || give_up

  ls "$BACKUP_SOURCE" | try rcat "$folder/$backup/complete" || give_up
  unfinished=
  say "Made $backup"

  # Only now, so that failing backups never use up the good ones.
  remove_old $((now - BACKUP_RETENTION_DAYS * 86400))
}

# remove_unfinished SECONDS removes what runs that began before then left behind. One that began later may still be running.
remove_unfinished() {
  list_complete
  while read -r b; do
    if before "$b" "$(name "$1")" && ! grep -qx "$b" "$work/complete"; then
      say "Removing $b, which was never completed"
      try purge "$folder/$b" || give_up
    fi
  done <"$work/folders"
}

# remove_old SECONDS removes the backups from before then, but never the last good one. The mark goes first, so that an
# interruption leaves no half of a backup that seems to be a whole one.
remove_old() {
  list_complete
  last=$(tail -n 1 "$work/complete")
  while read -r b; do
    if before "$b" "$(name "$1")" && [ "$b" != "$last" ]; then
      say "Removing $b, which is older than $BACKUP_RETENTION_DAYS days"
      try deletefile "$folder/$b/complete" && try purge "$folder/$b" || {
        explain
        fail 2 "$backup is made, but $b, which is too old, cannot be removed: $cause"
      }
    fi
  done <"$work/complete"
}

# list_complete writes the names of the good backups to $work/complete, the newest last.
list_complete() {
  try lsf --recursive --max-depth 2 --files-only --include '/*/complete' --s3-directory-markers=false "$folder" || give_up
  sed 's|/complete$||' "$work/out" | grep -E "$pattern" | sort >"$work/complete"
}

# A backup is called by the time at which it began.
pattern='^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}Z$'
name() { date_of "$1" %Y-%m-%dT%H-%M-%SZ; }
before() { expr "x$1" \< "x$2" >/dev/null; }
date_of() { date -u -d "@$1" "+$2" 2>/dev/null || date -u -r "$1" "+$2"; } # busybox and GNU, or else BSD

say() { echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) $*"; }

# try ARGUMENTS… runs rclone. Its output goes to $work/out; what it logs is shown, and kept in $work/log.
try() {
  rm -f "$work/failed"
  { rclone "$@" 2>&1 >"$work/out" || touch "$work/failed"; } | tee "$work/log" >&2
  [ ! -e "$work/failed" ]
}

give_up() {
  explain
  fail "$code" "$cause"
}

# fail CODE MESSAGE ends the script. The kubelet puts the message into the pod's status.
fail() {
  if [ -n "$unfinished" ]; then
    rclone purge --retries 1 --low-level-retries 1 --contimeout 5s "$unfinished" 2>/dev/null || true # else a later run does
  fi
  echo "Backup failed: $2" >"$BACKUP_TERMINATION_LOG"
  say "Backup failed: $2" >&2
  exit "$1"
}

# explain sets cause and code by what rclone logged before it failed.
explain() {
  code=2
  case $(cat "$work/log") in
  *InvalidAccessKeyId* | *SignatureDoesNotMatch* | *InvalidClientTokenId* | *InvalidToken* | *ExpiredToken*)
    cause="$server refuses the access key: correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the Secret that spec.destination.credentialsSecret names"
    ;;
  *"get credentials"* | *"retrieve credentials"* | *"refresh cached credentials"*)
    cause="there are no credentials: name a Secret in spec.destination.credentialsSecret, or a ServiceAccount with an identity of the cloud in spec.serviceAccountName"
    ;;
  *NoSuchBucket* | *"error listing: directory not found"*)
    cause="there is no bucket $BACKUP_BUCKET at $server: create it, or correct spec.destination.s3Bucket"
    ;;
  *PermanentRedirect* | *AuthorizationHeaderMalformed* | *BucketRegionError* | *"incorrect region"*)
    cause="bucket $BACKUP_BUCKET is in another region: correct spec.destination.region"
    ;;
  *AccessDenied* | *"StatusCode: 403"*)
    cause="$server allows these credentials too little: grant them s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload for bucket $BACKUP_BUCKET"
    ;;
  *"no such host"* | *"connection refused"* | *"i/o timeout"* | *"no route to host"* | *"network is unreachable"* | *"deadline exceeded"* | *x509:* | *"tls: "*)
    code=1
    cause="no S3 server answers at $server: correct spec.destination.endpoint, or let the network and the server's certificate pass"
    ;;
  *"$BACKUP_SOURCE"*"permission denied"*)
    cause="user $(id -u) may not read $(sed -n "s|.*\($BACKUP_SOURCE/.*\): permission denied.*|\1|p" "$work/log" | head -n 1): set spec.securityContext to a user or group that may"
    ;;
  *"source file is being updated"* | *"sizes differ"* | *"md5 differ"* | *"file not in"*)
    code=1
    cause="files changed while they were copied: choose a schedule when they do not, or set spec.changingFiles to Accept"
    ;;
  *)
    code=1
    cause=$(tail -n 1 "$work/log")
    ;;
  esac
}

# By its end the whole script has been read, so that nobody can change it under a run.
main
