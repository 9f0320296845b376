/*
 * child.c - see child.h.
 */
#include "child.h"

#include "../ui/ui.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in the new process: becomes COMMAND, or exits. */
static void exec_command(char *const *command, const sigset_t *blocked, int kept, pid_t parent,
                         int told)
{
	int error;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* If the parent ended before the call above, no signal comes. */
	if (getppid() != parent)
		_exit(PS_CHILD_SIGNALLED + SIGTERM);
	sigprocmask(SIG_UNBLOCK, blocked, NULL);
	if (kept >= 0)
		fcntl(kept, F_SETFD, 0);
	/* COMMAND is not the service: the runner itself reports to the service manager. */
	unsetenv("NOTIFY_SOCKET");
	execvp(command[0], command);
	error = errno;
	(void)!write(told, &error, sizeof(error));
	_exit(error == ENOENT ? PS_CHILD_NOT_FOUND : PS_CHILD_CANNOT);
}

/* Returns the errno of a failed exec, or 0: a successful exec closes the pipe without a byte. */
static int read_exec_error(int told)
{
	int error = 0;
	ssize_t n;

	do
		n = read(told, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	return n == sizeof(error) ? error : 0;
}

static int complain_cannot_start(const char *what, int error)
{
	ps_complain(PS_EXIT_FAILURE, "'%.200s' cannot be started: %s", what, strerror(error));
	return error == ENOENT ? PS_CHILD_NOT_FOUND : PS_CHILD_CANNOT;
}

int ps_child_start(struct ps_child *child, char *const *command, const sigset_t *blocked, int kept)
{
	const pid_t parent = getpid();
	int told[2], error, status;

	if (pipe2(told, O_CLOEXEC) < 0)
		return complain_cannot_start(command[0], errno);
	child->pid = fork();
	if (child->pid == 0)
		exec_command(command, blocked, kept, parent, told[1]);
	error = child->pid < 0 ? errno : 0;
	close(told[1]);
	if (!error) {
		error = read_exec_error(told[0]);
		if (error)
			waitpid(child->pid, &status, 0);
	}
	close(told[0]);
	if (!error)
		return 0;
	child->pid = 0;
	return complain_cannot_start(command[0], error);
}

void ps_child_signal(const struct ps_child *child, int signal)
{
	/* Only ps_child_reap() reaps the child, so the number still belongs to it. */
	if (child->pid > 0)
		kill(child->pid, signal);
}

/* Reaps all children: as the first process of a container it inherits orphans. */
bool ps_child_reap(struct ps_child *child, int *status)
{
	bool ended = false;
	pid_t pid;
	int how;

	while ((pid = waitpid(-1, &how, WNOHANG)) > 0) {
		if (pid != child->pid)
			continue;
		ended = true;
		child->pid = 0;
		*status = WIFEXITED(how) ? WEXITSTATUS(how) : PS_CHILD_SIGNALLED + WTERMSIG(how);
	}
	return ended;
}
