#include <dtrain/launcher/host_endings.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/text.hpp>

namespace dtrain::launcher {

HostEnding ending_of(const std::optional<launcher::HostFailure>& failure) {
  if (!failure) return HostEnding::done;
  switch (failure->kind) {
    case launcher::HostFailure::Kind::unreachable:
      return HostEnding::unreachable;
    case launcher::HostFailure::Kind::stopped:
      return HostEnding::stopped;
    case launcher::HostFailure::Kind::failed:
      break;
  }
  return HostEnding::failed;
}

ExitCode sum_up(const std::vector<std::string>& hosts, const std::vector<HostEnding>& endings, Reporter& reporter) {
  std::vector<std::string> bad;
  for (std::size_t i = 0; i < endings.size(); ++i) {
    if (endings[i] != HostEnding::done) bad.push_back(hosts[i]);
  }
  if (bad.empty()) return ExitCode::ok;
  reporter.note(fmt::format("failed on {} of {} hosts: {}", bad.size(), hosts.size(), join(bad, " ")));
  if (bad.size() < hosts.size()) return ExitCode::partly_done;
  const bool none_reached = std::ranges::all_of(endings, [](HostEnding e) { return e == HostEnding::unreachable; });
  return none_reached ? ExitCode::refused : ExitCode::failed;
}

std::string stopped_text(const std::vector<HostEnding>& endings) {
  return fmt::format("done on {} of {} hosts; on the others it was ended or not begun",
                     std::ranges::count(endings, HostEnding::done), endings.size());
}

}  // namespace dtrain::launcher
