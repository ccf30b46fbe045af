#include "worker_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include <dtrain/base/text.hpp>
#include <dtrain/elastic/admission_check.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/elastic/job_files.hpp>

namespace dtrain::elastic {
std::string file_name_of(std::string host) {
  std::replace_if(
      host.begin(), host.end(),
      [](unsigned char c) {
        return !std::isalnum(c) && std::string_view("._@:[]-+$%").find(char(c)) == std::string::npos;
      },
      '_');
  return host;
}

Path worker_log(const Path& job_folder, const std::string& host, int slot) {
  return job_folder / job_file::kLogs / fmt::format("{}.{}.log", file_name_of(host), slot);
}

Path prepare_log(const Path& job_folder, const std::string& host) {
  return job_folder / job_file::kLogs / fmt::format("prepare_{}.log", file_name_of(host));
}

Path agent_log(const AgentOrder& order) {
  return Path(order.job_folder) / job_file::kLogs / fmt::format("agent_{}.log", file_name_of(order.host));
}

std::string WorkerOutput::add(std::string_view bytes) {
  rest_ += bytes;
  const auto end = rest_.rfind('\n');
  if (end != rest_.npos) return take_lines(end + 1);
  if (rest_.size() < kLongestLine) return {};
  rest_ += '\n';
  return take_lines(rest_.size());
}

std::string WorkerOutput::end() {
  if (!rest_.empty()) rest_ += '\n';
  return take_lines(rest_.size());
}

std::string WorkerOutput::take_lines(std::size_t size) {
  std::string lines = rest_.substr(0, size);
  rest_.erase(0, size);
  file_.append(lines);
  if (lines.empty()) return lines;
  for (std::string& line : split(std::string_view(lines).substr(0, lines.size() - 1), '\n')) {
    last_lines_.push_back(std::move(line));
    if (last_lines_.size() > kLastLines) last_lines_.pop_front();
  }
  return lines;
}

}  // namespace dtrain::elastic
