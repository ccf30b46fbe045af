// The course of a run as far as the page asks for it: means of neighbouring lines in memory, the lines themselves in
// their file. A run of millions of lines takes a few MiB, and a reader who looks closer gets what the file says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "levels.hpp"
#include "plot/step_columns.hpp"

namespace dtrain::board {

// Lines that an answer needs: `rows` takes the bytes of the file from `begin` up to `end`.
struct LinesWanted {
  std::uint64_t begin = 0, end = 0;
  plot::StepColumns rows{};
};

class StepLevels {
 public:
  // Whole lines, oldest first; `offset`: of the first one in the file.
  void add(std::string_view lines, std::uint64_t offset);
  void fit();  // gives back the memory that was kept for lines to come

  std::size_t size() const { return tail_.dropped() + tail_.size(); }  // lines that were steps
  // The last lines, at least eight if there are so many, and what is known of the training as a whole.
  const plot::StepColumns& tail() const { return tail_; }

  // Which lines a picture of this window needs; nullopt: what is in memory is enough for it.
  std::optional<LinesWanted> lines_for(const Window& window) const;
  // From what is in memory, with fewer points than asked for where the lines would show more.
  Levels levels(const Window& window) const;

 private:
  // What is known of a column's values in neighbouring rows.
  struct Summary {
    double sum = 0;
    float low = 0, high = 0;
    std::uint32_t count = 0;  // of values that are finite
    static Summary of(std::span<const double> values);
    void add(const Summary& other);
  };
  // Blocks are equally many rows that follow each other. Lists have an element for each block.
  struct Ends {
    std::vector<double> at{}, epochs{}, steps{};  // of the last row
    std::vector<std::uint64_t> bytes{};           // of its line's end in the file
    std::vector<std::uint32_t> begins{};          // of the training's clock until then
  };
  struct Column {
    std::string name;
    std::vector<double> sums{};
    std::vector<float> lows{}, highs{};
    bool lacks = false;                   // some value
    std::vector<std::uint32_t> counts{};  // only where it does
  };
  struct Part {
    std::size_t first = 0, last = 0;  // blocks
  };

  void fold();
  void fold_rows(std::size_t first, std::size_t last);
  void halve();
  std::size_t blocks() const { return ends_.bytes.size(); }
  Summary summary(const Column& column, std::size_t block) const;
  void put(Column& column, std::size_t block, const Summary& summary) const;
  Column& column_of(const std::string& name);
  const Column* find(const std::string& name) const;
  Part part_of(const Window& window) const;
  bool shows_tail(Part part) const { return part.last == blocks(); }
  double place(Axis axis, std::size_t block) const;
  Levels::Column points_of(const plot::StepColumn& values, const Window& window, Part part) const;

  plot::StepColumns tail_;
  std::size_t rows_of_block_ = 16;
  Ends ends_;
  std::vector<Column> columns_;
};

}  // namespace dtrain::board
