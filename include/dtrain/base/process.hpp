// Child processes: arguments and environment byte for byte, no descriptor that was not meant for them, and an end that
// none of their descendants escapes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>

namespace dtrain {

struct Spawn {
  // process_group and session are the child's own; a session has no terminal. With inherit the child joins the caller's
  // group: it may ask the user at the terminal. It ignores SIGINT, SIGTERM and SIGHUP, which a terminal or timeout(1)
  // sends to the whole group, because the caller answers them.
  enum class Group { process_group, session, inherit };
  Path executable;                          // not searched for
  std::vector<std::string> arguments{};     // with argv[0]
  std::vector<std::string> environment{};   // NAME=value; nothing else is in it
  Path folder{};                            // to run in; empty: the caller's
  int input = -1, output = -1, error = -1;  // become 0, 1, 2; -1: /dev/null
  int extra = -1;                           // becomes 3; -1: closed, like all others
  Group group = Group::process_group;
  // The child gets this signal when the thread that called spawn() ends, however it ends; 0: none.
  int death_signal = 0;
};

// The group of a child that may have a question for the user: inherit in the foreground of the terminal. In the
// background it is session: the kernel stops the whole group of a process that reads the terminal from there.
Spawn::Group group_that_may_ask();

// The child that this command line means: its first word is the program. This program itself is called dtrain.
Spawn spawn_of(std::vector<std::string> command);

// What to throw where fork() failed with this error.
Error cannot_fork(int error);

// Returns once the child runs its program. Throws Error when it cannot. The caller reaps it.
pid_t spawn(const Spawn& child);

// This program's command line up to its first argument, to start it again: also where a bundle's loader runs it.
std::vector<std::string> own_command();
// What follows it there.
std::vector<std::string> own_arguments();
std::vector<std::string> own_environment();
// The environment with these NAME=value in it, in place of what it says of the same names.
std::vector<std::string> with_variables(std::vector<std::string> environment, const std::vector<std::string>& changes);

// Orphans among this process's descendants become its children instead of init's.
void adopt_orphans();
// Reaps an ended child that `known` does not hold: an adopted one. May reap several. Returns the id of one, 0: there is
// none.
pid_t reap_adopted(const std::vector<pid_t>& known);

// Processes that live (no zombies), without `root`, and without those `spared` and their descendants.
std::vector<pid_t> descendants_of(pid_t root, const std::vector<pid_t>& spared = {});
// A process of this group that lives (no zombie): `known`, where it still is one, because a look at all processes takes
// long on a busy machine. 0: there is none. The group's leader must not be reaped yet.
pid_t living_member(pid_t group, pid_t known = 0);
// Processes of this user whose environment holds a variable that begins with `mark`, "NAME=val". Their
// parent does not matter.
std::vector<pid_t> processes_marked(std::string_view mark);

// End with SIGKILL: `root` (unless it is the caller) with its descendants and all that carry the mark (empty: none),
// or only the latter. All are stopped first, so that none can start another meanwhile. Return the killed processes, for
// the caller to reap those that are its children. The caller always survives, and so do descendants that are `spared`.
// `root` must not be reaped yet: its number could be another's by now.
std::vector<pid_t> kill_tree(pid_t root, std::string_view mark = {}, const std::vector<pid_t>& spared = {});
std::vector<pid_t> kill_marked(std::string_view mark);
// The same for the members of a session too. Its leader must not be reaped yet either.
std::vector<pid_t> kill_session(pid_t leader, std::string_view mark);
// Reaps this process's children of a session, as far as they ended. False: there are none left.
bool reap_session(pid_t leader);
// The child ended; it is not reaped yet.
bool has_ended(pid_t child);

// Where a process number means the same process: this boot of the machine, and this container.
std::string process_namespace();
// One process among all that any machine ever ran: its namespace and when it began. Empty: there is no such process,
// or /proc does not show it. A process id alone may be another's by now, or another machine's.
std::string process_identity(std::int64_t process);

// For logs: a line for each thread with its number, name, state and where it waits in the kernel, from /proc.
std::vector<std::string> describe_threads(pid_t process);

}  // namespace dtrain
