// Results of an operation on many hosts, as text and as an exit code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>
#include <dtrain/launcher/fan_out.hpp>

namespace dtrain::launcher {

enum class HostEnding { done, failed, unreachable, stopped };
HostEnding ending_of(const std::optional<launcher::HostFailure>& failure);

// Reports the number and the names of hosts that failed. partly_done: some failed; refused: no host could be reached;
// failed: all failed.
ExitCode sum_up(const std::vector<std::string>& hosts, const std::vector<HostEnding>& endings, Reporter& reporter);
// The text after a signal: what was left undone.
std::string stopped_text(const std::vector<HostEnding>& endings);

}  // namespace dtrain::launcher
