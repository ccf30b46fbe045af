// Output of one worker: whole lines of both streams, appended to its log at once as they come. The last lines are kept
// for the report of its end. Where the worker says that its program starts, those of this stream begin anew, and its
// note is logged before the first line of the start.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/output_lines.hpp>
#include <dtrain/base/output_stream.hpp>
#include <dtrain/elastic/log_file.hpp>

namespace dtrain::elastic {

// Replaces characters that do not belong in a file name. Keeps all that the name of a host may have, so that files of
// two hosts are apart, and readers find those of a host by its name.
std::string file_name_of(std::string host);
// <job folder>/logs/<host>.<slot>.log
Path worker_log(const Path& job_folder, const std::string& host, int slot);

class WorkerOutput {
 public:
  static constexpr std::size_t kLastLines = 20;
  static constexpr std::size_t kLastNotes = 8;

  // Appends to the file. Where that fails only the last lines are kept: a full disk must not end a worker.
  // `start_mark`: what program_starts() returns for the worker; empty: it runs no program.
  explicit WorkerOutput(const Path& file, std::string start_mark = {})
      : file_(file), start_mark_(std::move(start_mark)) {}
  // Returns the whole lines, newlines included, that these bytes completed.
  std::string add(OutputStream stream, std::string_view bytes);
  // The stream has ended; returns the rest as lines.
  std::string end(OutputStream stream);
  std::vector<std::string> last_lines() const;

 private:
  std::string keep(OutputStream stream, std::string_view lines);
  void remember(OutputStream stream, std::string_view line);
  void begin_start(OutputStream stream, std::string_view note);

  LogFile file_;
  const std::string start_mark_;
  std::deque<std::string> notes_;     // that were logged, the last kLastNotes of them
  std::array<OutputLines, 2> lines_;  // [stream]
  struct Line {
    OutputStream stream;
    std::string text;
  };
  std::deque<Line> last_lines_;
};

}  // namespace dtrain::elastic
