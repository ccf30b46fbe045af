#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/parallel.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/objects.hpp>
#include <dtrain/data/record.hpp>

#include "record_format.hpp"
#include "record_index.hpp"

namespace dtrain::data {
namespace {

constexpr std::size_t kRecordsAtOnce = 256;
constexpr float kMostClasses = 1 << 20;

struct ObjectFault {
  double label = 0;
  std::optional<std::string> what;  // nullopt: it can be trained on
};

class Verifier {
 public:
  explicit Verifier(const Path& rec)
      : path_(rec), mapped_(rec), class_count_(static_cast<std::int32_t>(class_names(std::span(&rec, 1)).size())) {}

  VerifyReport run(std::size_t limit) {
    walk_frames();
    const std::size_t of_frames = problem_count();
    compare_index();
    index_problems_ = problem_count() - of_frames;
    decode_all();
    return report(limit);
  }

 private:
  RecordBytes file() const { return {mapped_.bytes(), path_}; }

  void add_problem(std::uint64_t offset, std::string what, bool is_damage = true) {
    const auto position = std::lower_bound(offsets_.begin(), offsets_.end(), offset) - offsets_.begin();
    const MutexLock lock(mutex_);
    problems_.push_back({offset, static_cast<std::size_t>(position), std::move(what), is_damage});
  }

  std::size_t problem_count() {
    const MutexLock lock(mutex_);
    return problems_.size();
  }

  void walk_frames() {
    const std::uint64_t size = mapped_.bytes().size();
    if (size == 0) add_problem(0, "the file is empty");
    for (std::uint64_t offset = 0; offset < size;) {
      try {
        const std::uint64_t end = record_end(file(), offset);
        offsets_.push_back(offset);
        offset = end;
      } catch (const RecordError& error) {
        add_problem(offset, error.reason());
        offset = next_record_start(file(), offset + 4);
      }
    }
  }

  // Every entry must be a record's beginning, and every record must have an entry.
  void compare_index() {
    const Path idx = index_path(path_);
    if (!std::filesystem::exists(idx)) return;
    std::vector<std::uint64_t> listed;
    try {
      listed = parse_index(read_file(idx), idx);
    } catch (const DataError& error) {
      return add_problem(0, error.what());
    }
    std::sort(listed.begin(), listed.end());
    for (const std::uint64_t offset : only_in_first(listed, offsets_)) {
      add_problem(offset, "the .idx lists a record here, but none begins here");
    }
    for (const std::uint64_t offset : only_in_first(offsets_, listed)) {
      add_problem(offset, "a record begins here that the .idx does not list");
    }
  }

  static std::vector<std::uint64_t> only_in_first(const std::vector<std::uint64_t>& first,
                                                  const std::vector<std::uint64_t>& second) {
    std::vector<std::uint64_t> rest;
    std::set_difference(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(rest));
    return rest;
  }

  void decode_all() {
    classes_.assign(offsets_.size(), -1);
    const std::size_t blocks = (offsets_.size() + kRecordsAtOnce - 1) / kRecordsAtOnce;
    for_each_in_parallel(blocks, [&](std::size_t block) {
      Image image;
      const std::size_t end = std::min(offsets_.size(), (block + 1) * kRecordsAtOnce);
      for (std::size_t i = block * kRecordsAtOnce; i < end; ++i) check_record(i, image);
    });
  }

  void check_record(std::size_t position, Image& image) try {
    const Record record = record_at(file(), offsets_[position]);
    decode_image(record.payload, kStoredChannels, image);
    const bool boxes = has_boxes(record.labels);
    if (const auto fault = boxes ? fault_of_objects(record, image) : fault_of_labels(record.labels))
      return add_problem(offsets_[position], *fault, false);
    if (boxes) return;
    if (record.labels.size() > 1) ++several_labels_;
    if (record.labels.size() == 1 && record.labels[0] < kMostClasses)
      classes_[position] = static_cast<std::int32_t>(record.labels[0]);
  } catch (const RecordError& error) {
    add_problem(offsets_[position], error.reason());
  } catch (const DataError& error) {
    add_problem(offsets_[position], error.what());
  }

  // Several labels are for other programs, which may take any number.
  std::optional<std::string> fault_of_labels(std::span<const float> labels) const {
    for (const float label : labels) {
      if (!std::isfinite(label)) return fmt::format("the label is {}", label);
    }
    if (labels.size() != 1) return std::nullopt;
    const auto label = static_cast<double>(labels[0]);
    if (label != std::floor(label)) return fmt::format("the label is {}, which is no whole number", label);
    if (label < 0) return fmt::format("the label is {}, and classes are counted from 0", label);
    if (class_count_ > 0 && label >= class_count_)
      return fmt::format("the label is {}, and {} classes are named", label, class_count_);
    return std::nullopt;
  }

  // Of each object of labels alone; without the rows that stand for none.
  static std::vector<ObjectFault> faults_in_labels(std::span<const float> labels) {
    std::vector<ObjectFault> faults;
    for (const std::span<const float> row : box_rows(labels)) {
      std::optional<std::string> fault = fault_of_row(row);
      if (fault || row[0] >= 0) faults.push_back({static_cast<double>(row[0]), std::move(fault)});
    }
    return faults;
  }

  // Throws DataError for damage.
  static std::vector<ObjectFault> faults_in_block(const Record& record, const Image& image) {
    const Annotations annotations = annotations_of(record, image.h, image.w);
    if (detection_labels(annotations, record.objects.size()) != record.labels)
      throw DataError("its labels and its objects name other boxes");
    std::vector<ObjectFault> faults;
    for (const Annotation& object : annotations.objects)
      faults.push_back({static_cast<double>(object.label), fault_of(object, annotations.height, annotations.width)});
    return faults;
  }

  std::optional<std::string> fault_of_objects(const Record& record, const Image& image) {
    std::vector<ObjectFault> objects =
        record.objects.empty() ? faults_in_labels(record.labels) : faults_in_block(record, image);
    std::size_t faults = 0;
    std::string first;
    for (std::size_t number = 0; number < objects.size(); ++number) {
      auto& [label, fault] = objects[number];
      if (!fault && class_count_ > 0 && label >= class_count_)
        fault = fmt::format("its class is {}, and {} are named", label, class_count_);
      if (fault && faults++ == 0) first = fmt::format("object {}: {}", number, *fault);
    }
    if (faults > 0) return faults == 1 ? first : fmt::format("{}; {} more are bad", first, faults - 1);
    objects_ += objects.size();
    return std::nullopt;
  }

  VerifyReport report(std::size_t limit) {
    const MutexLock lock(mutex_);
    VerifyReport report;
    report.records = offsets_.size();
    report.several_labels = several_labels_;
    report.objects = objects_;
    report.problem_count = problems_.size();
    report.index_problems = index_problems_;
    const std::int32_t highest = classes_.empty() ? -1 : *std::max_element(classes_.begin(), classes_.end());
    report.class_counts.resize(static_cast<std::size_t>(highest + 1));
    for (const std::int32_t label : classes_) {
      if (label >= 0) ++report.class_counts[static_cast<std::size_t>(label)];
    }
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const VerifyProblem& a, const VerifyProblem& b) { return a.offset < b.offset; });
    const auto damage = std::ranges::find_if(problems_, &VerifyProblem::is_damage);
    if (damage != problems_.end()) report.damage = *damage;
    problems_.resize(std::min(problems_.size(), limit));
    report.problems = std::move(problems_);
    return report;
  }

  Path path_;
  MappedFile mapped_;
  std::vector<std::uint64_t> offsets_;  // of the records whose frames are whole
  std::vector<std::int32_t> classes_;   // of each, -1 where there is none
  std::int32_t class_count_ = 0;        // that are named; 0: unknown
  std::size_t index_problems_ = 0;
  std::atomic<std::size_t> objects_ = 0, several_labels_ = 0;
  Mutex mutex_;
  std::vector<VerifyProblem> problems_ DTRAIN_GUARDED_BY(mutex_);
};

}  // namespace

VerifyReport verify_records(const Path& rec, std::size_t limit) {
  if (is_remote(rec)) {
    throw UsageError(fmt::format("{}: every byte of it would come over the network twice", shown_path(rec).string()),
                     fmt::format("copy it first: dtrain data cp {} .", shown_path(rec).string()));
  }
  return Verifier(rec).run(limit);
}

}  // namespace dtrain::data
