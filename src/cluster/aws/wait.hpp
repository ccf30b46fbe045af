// Waiting for what a service does in its own time.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace dtrain::cluster {

// Asks until done() is true, first often, then every few seconds. Throws RemoteError "WHAT: not within ..." after
// `patience`, Stopped after SIGINT or SIGTERM.
void wait_until(std::chrono::milliseconds patience, const std::string& what, const std::function<bool()>& done);

// Throws Stopped after SIGINT or SIGTERM.
void pause_for(std::chrono::milliseconds time);

}  // namespace dtrain::cluster
