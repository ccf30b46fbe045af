#include <dtrain/elastic/log_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/still_named.hpp>
#include <dtrain/elastic/records.hpp>

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
constexpr auto kLook = 1s;

Path numbered(const Path& path, int number) { return path.string() + fmt::format(".{}", number); }

std::string with_time(std::string_view lines, char before) {
  const std::string time = format_time(std::chrono::system_clock::now()) + before;
  std::string text;
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size() - 1) + 1;
    text.append(time).append(lines.substr(0, end));
    lines.remove_prefix(end);
  }
  return text;
}

}  // namespace

LogFile::LogFile(Path path, std::uint64_t rotate_at) : path_(std::move(path)), rotate_at_(rotate_at) { open(); }

void LogFile::open() {
  std::error_code ignored;
  std::filesystem::create_directories(path_.parent_path(), ignored);
  file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  size_ = 0;
  struct stat status {};
  if (!file_ || ::fstat(file_.get(), &status) != 0) return;
  size_ = static_cast<std::uint64_t>(status.st_size);
  char last = '\n';
  torn_ = size_ > 0 && ::pread(file_.get(), &last, 1, status.st_size - 1) == 1 && last != '\n';
}

void LogFile::append(std::string_view lines, char before) {
  if (lines.empty()) return;
  notice_rename();
  std::string text = torn_ ? "\n" : "";
  if (lost_ > 0) text += with_time(fmt::format("dtrain: {} lines could not be written here\n", lost_), kBeforeLine);
  text += with_time(lines, before);
  if (write(text)) {
    lost_ = 0;
  } else {
    lost_ += static_cast<std::uint64_t>(std::ranges::count(lines, '\n'));
  }
  if (size_ >= rotate_at_) rotate();
}

// A disk that fills up may take part of the text.
bool LogFile::write(std::string_view text) {
  if (!file_) return false;
  const std::size_t written = write_all(file_, bytes_of(text));
  if (written > 0) torn_ = text[written - 1] != '\n';
  size_ += written;
  return written == text.size();
}

void LogFile::rotate() {
  for (int number = kKept; number > 1; --number) {
    std::rename(numbered(path_, number - 1).c_str(), numbered(path_, number).c_str());
  }
  std::rename(path_.c_str(), numbered(path_, 1).c_str());
  open();
}

// Also opens a file again that could not be opened before.
void LogFile::notice_rename() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kLook) return;
  looked_ = now;
  if (!is_still_reached(file_, path_)) open();
}

}  // namespace dtrain::elastic
