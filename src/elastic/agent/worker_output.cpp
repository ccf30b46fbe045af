#include "worker_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::elastic {
namespace {

// One write for many lines: with O_APPEND, what two processes write to the same file does not mix within a line.
void append(int file, std::string_view lines) {
  while (!lines.empty()) {
    const ssize_t written = ::write(file, lines.data(), lines.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    lines.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Path worker_log(const Path& job_folder, const std::string& host, int slot) {
  std::string name = host;
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) {
        return !std::isalnum(c) && std::string_view("._@:[]-").find(char(c)) == std::string::npos;
      },
      '_');
  return job_folder / "logs" / fmt::format("{}.{}.log", name, slot);
}

WorkerOutput::WorkerOutput(const Path& file) {
  try {
    make_folder(file.parent_path());
  } catch (const Error&) {
  }
  file_ = FileDescriptor(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
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
  if (file_) append(file_.get(), lines);
  if (lines.empty()) return lines;
  for (std::string& line : split(std::string_view(lines).substr(0, lines.size() - 1), '\n')) {
    last_lines_.push_back(std::move(line));
    if (last_lines_.size() > kLastLines) last_lines_.pop_front();
  }
  return lines;
}

}  // namespace dtrain::elastic
