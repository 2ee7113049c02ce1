// A program that runs in any image, with or without a file system of its own: `pause` waits for the end of its pod,
// `pause install PATH` copies itself there, `pause exit` does nothing, successfully.
//
// The image puller's method `noop` starts it inside images that it only wants to have pulled.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = "usage: pause | pause install PATH | pause exit"

func main() {
	arguments := os.Args[1:]
	switch {
	case len(arguments) == 0:
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
		<-stop
	case len(arguments) == 2 && arguments[0] == "install":
		if err := install(arguments[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(arguments) == 1 && arguments[0] == "exit":
	default:
		fmt.Fprintf(os.Stderr, "found %q; %s\n", arguments, usage)
		os.Exit(2)
	}
}

// install copies this program to path; a container that starts again finds an older copy, which may be running.
func install(path string) error {
	content, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	half := path + ".new"
	if err := os.WriteFile(half, content, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(half, 0o755); err != nil { // whatever the umask
		return err
	}
	return os.Rename(half, path)
}
