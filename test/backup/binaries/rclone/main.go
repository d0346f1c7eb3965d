// Command rclone is rclone with the backends and commands that the backup script uses, and no other: compiled for the test of
// the script, it takes a fraction of the whole rclone's time.
package main

import (
	_ "github.com/rclone/rclone/backend/local" // the volumes
	_ "github.com/rclone/rclone/backend/s3"    // the destination
	"github.com/rclone/rclone/cmd"
	_ "github.com/rclone/rclone/cmd/cat"        // prints a mark
	_ "github.com/rclone/rclone/cmd/check"      // compares a backup with the volumes
	_ "github.com/rclone/rclone/cmd/copy"       // makes a backup, and restores one
	_ "github.com/rclone/rclone/cmd/copyto"     // makes an old backup, for the tests
	_ "github.com/rclone/rclone/cmd/deletefile" // removes the mark
	_ "github.com/rclone/rclone/cmd/lsf"        // lists the backups
	_ "github.com/rclone/rclone/cmd/purge"      // removes one
	_ "github.com/rclone/rclone/cmd/rcat"       // marks one complete
	_ "github.com/rclone/rclone/cmd/version"    // says which rclone it is
)

func main() {
	cmd.Main()
}
