// Package backup runs the script of the Backup kind's chart for real: with rclone, against an S3 server over a temporary
// folder. Script and environment are those of the rendered ConfigMap and CronJob. Both programs are compiled once, from Go
// modules, into .cache/backup; only Go and a POSIX shell are needed.
package backup
