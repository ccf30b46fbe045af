// From records to host batches: decode and augment in threads, a bounded queue, an order that is a pure function.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dtrain/data/augment.hpp>
#include <dtrain/data/objects.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/nn/graph.hpp>
#include <dtrain/nn/objects.hpp>

namespace dtrain::data {

// Positions 0..count-1 in the order of the epoch: Fisher-Yates over RandomStream(seed, order, epoch, 0). `block` > 0:
// the runs of so many positions are brought into such an order, then the positions of each 16 runs that follow one
// another. So few parts of the file are in use at a time; in a file whose neighbours are alike, so are the samples of a
// batch.
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint32_t epoch, std::uint32_t count,
                                       std::uint32_t block = 0);

// Which records an epoch takes, one after the other.
struct EpochOrder {
  std::vector<std::uint32_t> records;
  std::vector<std::uint32_t> copies;  // as of SampleKey; empty: no record comes twice
  friend bool operator==(const EpochOrder&, const EpochOrder&) = default;
};
// As many records as there are labels, from each class that has some equally many, or one more: the records of a class
// take turns in a random order, again and again where they are too few. A function of (seed, epoch, labels).
EpochOrder balanced_order(std::uint64_t seed, std::uint32_t epoch, std::span<const std::int32_t> labels);
// As long as `order`, from its first records: each comes `times` times in a row, as copies of its own.
EpochOrder repeated(EpochOrder order, int times);
// The same records in another order: `batch` records of one group follow one another, so that each step has a group of
// its own. A group's records stay in their order, and a batch stands where its last record stood; what is left of the
// groups comes at the end, group after group. `groups`: that of each position. No copies.
EpochOrder grouped(const EpochOrder& order, std::span<const std::uint8_t> groups, int batch);

// One batch. Its buffers return to the loader's pool when the last copy is destroyed, which may be after the loader.
struct Batch {
  int n = 0;                             // as many as its slice counts, or fewer with LoaderOptions::leave_out_bad
  const float* images = nullptr;         // [n, c, h, w], 64-byte aligned; null where there are pixels
  const std::int32_t* labels = nullptr;  // [n], each in [0, classes)
  // [n], positions in the set; of copy k of a record k times Loader::size() more.
  const std::uint32_t* sample_ids = nullptr;
  std::shared_ptr<void> storage;
  nn::Pixels pixels = {};  // where LoaderOptions::as_bytes asks for them
  // [n], where LoaderOptions::detection asks for them: labels are 0 then, and images are never bytes. Else null.
  const nn::PictureObjects* objects = nullptr;
  nn::Shape shape = {};  // of the images
};

// The images of a batch as floats [n, c, h, w], whatever it holds.
std::vector<float> images_of(const Batch& batch, const nn::Shape& shape);

// Gives so many bytes, aligned to 64; throws where there are none.
using BatchMemory = std::function<std::shared_ptr<std::byte>(std::size_t)>;

struct LoaderOptions {
  nn::Shape shape;
  int classes = 0;
  Augment augment{};
  std::uint64_t seed = 0;
  int threads = 1;
  int queue_batches = 4;            // that are being loaded or wait for next(): they bound the memory
  bool shuffle = true;              // false: file order (evaluation)
  std::uint32_t shuffle_block = 0;  // as epoch_order() takes it
  bool balanced = false;            // an epoch's order is balanced_order()
  int repeats = 1;                  // of each record of an epoch: repeated()
  std::int64_t num_examples = 0;    // use only the first so many records; 0 or more than there are: all
  // Records that cannot be read or decoded. Up to so many of them (counted once each, however often they come up) are
  // replaced by pixels and label of the next good record, under their own sample id; one more is a DataError. Never
  // silently: bad_records() counts them, and remote.tell gets the first when it comes up.
  std::int64_t max_bad_records = 0;
  bool names_bad_limit = true;  // whether that error advises to raise the limit
  // For an evaluation, whose numbers a replacement would falsify: a batch holds only the good records of its slice, and
  // may be empty. A file without any good record is a DataError all the same.
  bool leave_out_bad = false;
  bool has_fixed_classes = false;  // those of a checkpoint: other data fits them, and not another number
  RemoteOptions remote = {};       // for files behind URLs
  bool as_bytes = false;           // a quarter of the memory; the backend normalises them: Batch::pixels
  BatchMemory memory = {};         // empty: ordinary memory
  // For records with boxes: pictures are seen whole. augment.random_crop is without a meaning then; what else would
  // move or cut boxes is refused.
  std::optional<DetectionInput> detection = std::nullopt;
  // Above 0, and detection->groups: an epoch's order is grouped() in batches of so many, a slice lies within one of
  // them, and its images have their group's height and width instead of the shape's.
  int group_batch = 0;
  // Above 0: decoded pictures are kept in so many bytes of memory. Each one is decoded when it first comes up and kept
  // while there is room; raw pixels lie in the file already and are not kept. Every sample is then made from the whole
  // picture, kept or not, so that pixels depend on whether this is above 0, and on nothing else about it: those of a
  // reduced JPEG (decode_and_augment()) differ slightly from them, and damage anywhere in a picture makes it a bad one.
  std::uint64_t decoded_cache = 0;
  // Above 0 for a run that is to outlast its server: where that is away, records of files behind URLs are tried again
  // for so long, after one line to remote.tell. In a wait of more than a few seconds for them, next() then calls
  // while_waiting several times a second and throws what it throws.
  std::chrono::seconds patience{0};
  std::function<void()> while_waiting = {};
  bool in_groups() const { return group_batch > 0 && detection && !detection->groups.empty(); }
};

struct LoaderRanges {
  ValueRange repeats = between(1, 100);
  ValueRange classes = at_least(1), threads = kThreadRange, queue_batches = between(1, 10000);
  ValueRange num_examples = at_least(0), max_bad_records = at_least(0);
  ValueRange decoded_cache_gib = between(0, 65536);
};
inline constexpr LoaderRanges kLoaderRanges;

// How many of the records an epoch takes; --num-examples 0, or one above their number, takes all.
std::uint64_t samples_of_epoch(std::uint64_t records, std::int64_t num_examples);

// Bytes of the batches of `samples` each that a loader holds at most, with one that its consumer has not let go of.
// What it knows of each record besides, place and turn, takes at most 32 bytes a record; the files are mapped. Masks to
// learn from come on top: each object has one of a byte a pixel of the input. So do decoded pictures:
// LoaderOptions::decoded_cache.
std::uint64_t buffer_bytes(const LoaderOptions& options, int samples);

// What became of LoaderOptions::decoded_cache so far. A record that is decoded anew counts each time.
struct KeptPictures {
  std::uint64_t pictures = 0, bytes = 0, decodings = 0;
};

// The pictures of an epoch that are padded to the same size.
struct PictureGroup {
  nn::Shape shape;
  std::uint32_t samples = 0;
};

// Part of an epoch's order: order[first], ..., order[first + count - 1].
struct Slice {
  std::uint64_t first = 0;
  int count = 0;
};

// One set of files, one consumer: all members are called from one thread. Every byte of every batch is a pure function
// of the files, options, epoch and slice; neither the number of threads nor their timing shows.
class Loader {
 public:
  // `records` as find_records() takes it. Throws UsageError (an option out of range), DataError (a file, or its images
  // and `shape` have different channels).
  Loader(const Path& records, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  std::uint32_t size() const;        // samples of an epoch
  RecordOrder record_order() const;  // of the records of an epoch; reads a few of them
  // As LoaderOptions::group_batch asks for them, in the order of their remainders at the end of an epoch; else none.
  const std::vector<PictureGroup>& groups() const;
  // Drops what is queued, also an error, and begins to load `slices`, one batch each, of the epoch.
  void start(std::uint32_t epoch, std::vector<Slice> slices);
  // Loads one more batch of that epoch, behind those that were asked for.
  void add(const Slice& slice);
  // Blocks. nullopt after the last slice and before the first start(). Throws what went wrong in loading this batch
  // (the first in its order): a record too many that cannot be read, a label outside [0, classes); again at every call
  // until start().
  [[nodiscard]] std::optional<Batch> next();
  // What next() would give, where it need not wait, throw or count a bad record for it; else nullopt.
  [[nodiscard]] std::optional<Batch> next_if_ready();
  std::int64_t bad_records() const;      // distinct ones in the batches that next() has reached
  std::string first_bad_record() const;  // file, position, offset, reason; empty if none
  // How many there are, what became of them and which is the first, in words; empty if there are none.
  std::string bad_records_warning() const;
  KeptPictures kept_pictures() const;  // at this moment, while threads go on loading

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::data
