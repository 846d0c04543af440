package capture

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// Command is the command line that becomes self, with its arguments, in new namespaces: by the tool
// unshare of util-linux, since a program of several threads cannot leave its own. The error says what
// the system has to allow.
func Command(self ...string) (path string, args []string, err error) {
	path, err = exec.LookPath("unshare")
	if err != nil {
		return "", nil, fmt.Errorf("%w: the program unshare of util-linux is not in PATH", ErrNot)
	}
	options := []string{"--net", "--mount"}
	if try(path, options) != nil { // without rights of root, by a user namespace
		options = append([]string{"--user", "--map-current-user", "--keep-caps"}, options...)
		if err := try(path, options); err != nil {
			return "", nil, fmt.Errorf("%w: this user may make no namespaces (%w). "+
				"To allow it on Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0. "+
				"On others: sysctl user.max_user_namespaces=15000. "+
				"In a container of Docker: --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined", ErrNot, err)
		}
	}
	return path, append(append([]string{"unshare"}, append(options, "--")...), self...), nil
}

// try makes the namespaces once, for nothing.
func try(path string, options []string) error {
	var said bytes.Buffer
	c := exec.Command(path, append(slices.Clone(options), "--", "/bin/true")...)
	c.Stderr = &said
	if err := c.Run(); err != nil {
		if text := strings.TrimSpace(said.String()); text != "" {
			return fmt.Errorf("%s", text)
		}
		return err
	}
	return nil
}
