#include "console.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error_json.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/with_flags.hpp>
#include <dtrain/elastic/records.hpp>

#include "error_details.hpp"
#include "printable.hpp"

namespace dtrain::cli {
namespace {

bool can_draw(int fd) { return isatty(fd) && environment("TERM").value_or("") != "dumb"; }

bool wants_color(const std::string& choice, int fd) {
  if (choice == "always") return true;
  if (choice == "never") return false;
  return can_draw(fd) && environment("NO_COLOR").value_or("").empty();
}

const char* escape(Style style) {
  switch (style) {
    case Style::heading:
      return "\x1b[1m";
    case Style::error:
      return "\x1b[1;31m";
    case Style::warning:
      return "\x1b[33m";
    case Style::plain:
      break;
  }
  return "";
}

std::string paint(bool color, Style style, std::string_view text) {
  return color && style != Style::plain ? fmt::format("{}{}\x1b[0m", escape(style), text) : std::string(text);
}

// An error is one line, whatever names it repeats.
std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
    } else {
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : fmt::format("\\x{:02x}", byte);
    }
  }
  return out;
}

// Each line after the present time, as elastic/agent/log_file writes it.
std::string with_times(std::string_view lines) {
  const std::string time = elastic::format_time(std::chrono::system_clock::now()) + " ";
  std::string text = time;
  for (const char c : lines) {
    text += c;
    if (c == '\n') text += time;
  }
  return text;
}

// As a program ends that knows nothing of SIGPIPE. Returns where the caller of this program ignores the signal.
void end_by_sigpipe() {
  if (is_ignored(SIGPIPE)) return;
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
}

}  // namespace

Console::Console(const ReportOptions& options, Streams streams)
    : options_(options),
      streams_(streams),
      color_answers_(wants_color(options.color, STDOUT_FILENO)),
      color_notes_(wants_color(options.color, STDERR_FILENO)),
      draws_progress_(can_draw(STDERR_FILENO) && !options.quiet) {}

int Console::columns() const {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void Console::answer(std::string_view text) {
  progress({});
  std::string shown = printable_on(STDOUT_FILENO, text);
  if (streams_ == Streams::log) shown = with_times(shown);
  shown += '\n';
  write(STDOUT_FILENO, std::move(shown));
}

void Console::answer_json(const Json& document) {
  answer(document.dump());
  if (!queue_) flush();
}

void Console::flush() {
  std::fflush(stdout);
  if (queue_) queue_->flush();
}

void Console::finish() {
  progress({});
  const bool written = std::fflush(stdout) == 0 && !std::ferror(stdout);
  const int error = errno;
  if (queue_) queue_->finish();
  const int later = queue_ ? queue_->error_of(STDOUT_FILENO) : 0;
  if (written && later == 0) return;
  const int why = later != 0 ? later : error;
  if (why == EPIPE) end_by_sigpipe();
  throw Error(fmt::format("standard output: cannot write: {}", std::strerror(why)),
              why == ENOSPC || why == EDQUOT ? "free some space, or redirect the output to another place"
                                             : "redirect the output to another place");
}

void Console::never_wait_for_readers() {
  std::fflush(stdout);
  if (!queue_) queue_ = std::make_unique<OutputQueue>();
}

void Console::note(std::string_view line) {
  if (!options_.quiet) write_line(with_flags(line));
}

void Console::detail(std::string_view line) {
  if (options_.verbose) write_line(with_flags(line));
}

void Console::warn(std::string_view what) {
  write_line(fmt::format("dtrain: {} {}", paint_note(Style::warning, "warning:"), with_flags(what)));
}

void Console::pass_on(std::string_view line) { write_line(line); }

void Console::error(const Error& error) {
  if (options_.json) {
    Json row = error_to_json(error);
    for (const char* key : {"message", "hint"}) row[key] = with_flags(row.at(key).as_string());
    if (Json details = error_details(error); !details.is_null()) row["details"] = std::move(details);
    write_line(Json::object({{"error", std::move(row)}}).dump());
    return;
  }
  write_line(fmt::format("{} {}", paint_note(Style::error, "dtrain:"), one_line(with_flags(error.what()))));
  if (error.hint().empty()) return;
  write_line(fmt::format("{} {}", paint_note(Style::heading, "hint:"), with_flags(error.hint())));
}

void Console::progress(std::string_view line) {
  const MutexLock lock(mutex_);
  draw(line);
}

void Console::draw(std::string_view line) {
  if (line.empty() && !line_is_drawn_) return;
  if (!draws_progress_) return;
  const std::string visible = first_letters(printable_word(line), static_cast<std::size_t>(columns() - 1));
  write(STDERR_FILENO, "\r\x1b[K" + visible);
  line_is_drawn_ = !line.empty();
}

std::unique_ptr<Reporter> Console::reopened() const { return std::make_unique<Console>(options_, Streams::log); }

std::string Console::paint_answer(Style style, std::string_view text) const {
  return paint(color_answers_, style, text);
}

std::string Console::paint_note(Style style, std::string_view text) const { return paint(color_notes_, style, text); }

void Console::write_line(std::string_view line) {
  const MutexLock lock(mutex_);
  draw({});
  std::string whole = printable_on(STDERR_FILENO, line);
  if (streams_ == Streams::log) whole = with_times(whole);
  whole += '\n';
  write(STDERR_FILENO, std::move(whole));
}

void Console::write(int fd, std::string text) {
  if (queue_) return queue_->put(fd, std::move(text));
  std::fwrite(text.data(), 1, text.size(), fd == STDOUT_FILENO ? stdout : stderr);
}

}  // namespace dtrain::cli
