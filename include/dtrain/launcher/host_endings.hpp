// What became of work on many hosts, for people and as an exit code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>
#include <dtrain/launcher/fan_out.hpp>

namespace dtrain::launcher {

enum class HostEnding { done, failed, unreachable, stopped };
HostEnding ending_of(const std::optional<launcher::HostFailure>& failure);

// Says on how many hosts it failed, and on which; partly_done: on some, refused: no host could be reached, failed: on
// all.
ExitCode sum_up(const std::vector<std::string>& hosts, const std::vector<HostEnding>& endings, Reporter& reporter);
// After a signal: what the signal left undone.
std::string stopped_text(const std::vector<HostEnding>& endings);

}  // namespace dtrain::launcher
