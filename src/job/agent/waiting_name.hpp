// The name under which a process waits in a job folder. One process among all machines has it: hosts that are copies of
// one machine may offer themselves under the same name, but orders and the list of hosts know one host of a name.
#pragma once

#include <chrono>
#include <string>

#include <dtrain/launcher/waiting_folder.hpp>

namespace dtrain::job {

// The process is one of this machine, and lives. Folders are shared, so the number alone may be that of a process here
// that has nothing to do with it.
bool is_here(const launcher::WaitingHost& shown);
// It is the process that calls.
bool is_own(const launcher::WaitingHost& shown);

// Returns when no other process waits under this name, or after a stop signal. Clocks of machines differ, so a process
// of another machine, or one here that may hang, is there if it renews its file within `watch`. Throws Error if it is.
void await_free_name(const launcher::WaitingFolder& files, const std::string& host,
                     std::chrono::milliseconds watch = 3 * launcher::kRenewInterval);
// For a process without an agent that has shown itself: throws Error if the file shows another one, written since, and
// it is this process that has to leave. The one with an agent stays; of two without, each finds the same one to stay.
void give_way(const launcher::WaitingFolder& files, const std::string& host);
// Removes the files of the host, unless they show another process.
void forget_own(const launcher::WaitingFolder& files, const std::string& host);

}  // namespace dtrain::job
