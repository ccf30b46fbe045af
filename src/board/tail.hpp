// The whole lines of a file, as far as they are written, while it grows.
#pragma once

#include <cstdint>
#include <string>

#include "files.hpp"

namespace dtrain::board {

class Tail {
 public:
  explicit Tail(std::string path) : path_(std::move(path)) {}

  struct News {
    std::string lines{};     // whole ones, each with its newline
    std::uint64_t at = 0;    // bytes of the file before them
    bool restarted = false;  // the file is another one now: what was read of it before counts no more
    bool more = false;       // ask again at once
    bool any() const { return restarted || !lines.empty(); }
  };
  News next(Files& files);
  const std::string& path() const { return path_; }

 private:
  bool is_another(Files& files);
  void begin_again();

  const std::string path_;
  std::uint64_t at_ = 0;    // bytes that were read
  std::string head_;        // the first of them, which tell a file from its successor
  std::string rest_;        // read, but no whole line yet
  bool restarted_ = false;  // and no news have said so yet
};

}  // namespace dtrain::board
