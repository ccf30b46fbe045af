#include <dtrain/data/prepare.hpp>

#include <fmt/format.h>

#include <array>
#include <span>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/temporaries.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/record.hpp>

#include "outlines.hpp"
#include "photographs.hpp"
#include "record/record_index.hpp"
#include "record/set_document.hpp"
#include "sample_source.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint64_t kProgressEvery = 1000;

// Small pictures come one after another, photographs are packed.
struct KnownSet {
  std::string_view name;
  std::unique_ptr<SampleSource> (*open)(const PrepareOptions&);
  Photographs (*photographs)(const PrepareOptions&) = nullptr;
  PrepareResult (*folders)(const PrepareOptions&) = nullptr;  // instead of records; makes PrepareOptions::out
  std::span<const std::string_view> class_names = {};         // by label; photographs bring theirs
};
constexpr std::array<std::string_view, 10> kCifar10{"airplane", "automobile", "bird",  "cat",  "deer",
                                                    "dog",      "frog",       "horse", "ship", "truck"};
constexpr std::array<std::string_view, 10> kFashion{"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                    "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
constexpr std::array<std::string_view, 10> kDigits{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
constexpr std::array<KnownSet, 7> kSets{{{"cifar10", open_cifar10, nullptr, nullptr, kCifar10},
                                         {"fashion-mnist", open_fashion_mnist, nullptr, nullptr, kFashion},
                                         {"mnist", open_mnist, nullptr, nullptr, kDigits},
                                         {"shapes", open_shapes, nullptr, nullptr, kShapeNames},
                                         {"shapes-detection", nullptr, open_shapes_detection},
                                         {"imagenet", nullptr, open_imagenet},
                                         {"coco", nullptr, open_coco, unpack_coco}}};

const KnownSet& find_set(const std::string& name) {
  for (const KnownSet& set : kSets) {
    if (set.name == name) return set;
  }
  const std::vector<std::string> names = prepare_names();
  const auto near = nearest_name(name, names);
  throw UsageError(fmt::format("\"{}\" is no data set that dtrain can prepare", name),
                   near ? fmt::format("did you mean {}?", *near) : fmt::format("one of: {}", join(names, ", ")));
}

std::string payload_of(const Image& image, const PrepareOptions& options) {
  return options.encoding ? encode_image(image, *options.encoding) : encode_flat_png(image);
}

// Where the user chose no encoding, raw pixels will do as well, which are what dtrain 0.1.0 wrote.
bool is_payload_of(const Image& image, std::string_view payload, const PrepareOptions& options) {
  return payload == payload_of(image, options) || (!options.encoding && payload == encode_image(image, Encoding::raw));
}

enum class Found {
  nothing,  // or what a killed run or a damaged disk left
  same,     // exactly these samples
  other,
};

bool holds(const RecordFile& file, const SampleSource& source, Split split, const PrepareOptions& options) {
  if (file.size() != source.count(split)) return false;
  std::size_t position = 0;
  bool same = true;
  source.for_each(split, [&](std::uint8_t label, const Image& image) {
    const Record record = file.read(position);
    same = record.id == position && record.labels.size() == 1 && record.labels[0] == static_cast<float>(label) &&
           is_payload_of(image, text_of(record.payload), options);
    ++position;
    return same;
  });
  return same;
}

Found look_at(const Path& rec, const SampleSource& source, Split split, const PrepareOptions& options) try {
  if (!std::filesystem::exists(rec)) return Found::nothing;
  return holds(RecordFile(rec), source, split, options) ? Found::same : Found::other;
} catch (const DataError&) {
  return Found::nothing;
}

void refuse_to_overwrite(const Path& rec, Found found, const PrepareOptions& options) {
  if (options.force || found != Found::other) return;
  throw UsageError(rec.string() + ": is there already and holds other records",
                   "setting 'force' writes over it; or choose another setting 'out'");
}

// Writes the index where it is missing: a run that is killed after the records leaves none. RecordFile then reads the
// records to find their places.
void complete_index(const Path& rec) {
  if (std::filesystem::exists(index_path(rec))) return;
  const RecordFile file(rec);
  std::string index;
  for (std::size_t i = 0; i < file.size(); ++i) index += index_line(file.read(i).id, file.offset(i));
  write_file_atomic(index_path(rec), index);
}

void write_class_names(const KnownSet& set, const PrepareOptions& options) {
  const Json::Array classes(set.class_names.begin(), set.class_names.end());
  write_file_atomic(
      options.out / (options.name + ".pack.json"),
      Json::object(
          {{"schema", "dtrain.pack/1"}, {"plan", "prepare"}, {"classes", Json(classes)}, {"files", Json::array()}})
              .dump(1) +
          "\n");
}

void write_records(RecordWriter& writer, const SampleSource& source, Split split, const PrepareOptions& options) {
  const std::uint64_t total = source.count(split);
  std::uint64_t id = 0;
  source.for_each(split, [&](std::uint8_t label, const Image& image) {
    writer.add(id++, static_cast<float>(label), bytes_of(payload_of(image, options)));
    if (options.progress && (id % kProgressEvery == 0 || id == total)) {
      options.progress(split == Split::train ? "train" : "val", id, total, "records");
    }
    return true;
  });
}

void write_splits(const SampleSource& source, const PrepareResult& result, const PrepareOptions& options) {
  RecordWriter train(result.train), val(result.val);
  write_records(train, source, Split::train, options);
  write_records(val, source, Split::val, options);
  train.finish();
  val.finish();
}

PackResult pack_photographs(Pictures pictures, std::string_view split, const PrepareOptions& options) {
  PackOptions pack{.sources = {pictures.list.root},
                   .out = options.out / fmt::format("{}_{}", options.name, split),
                   .resize = options.resize,
                   .quality = options.quality,
                   .encoding = options.encoding,
                   .shards = options.shards,
                   .shuffle = split == "train",
                   .seed = options.seed,
                   .train_ratio = 1,
                   .threads = options.threads,
                   .force = options.force};
  if (options.progress) {
    pack.progress = [&](std::uint64_t done, std::uint64_t total) { options.progress(split, done, total, "pictures"); };
  }
  return pack_opened(pack, std::move(pictures));
}

std::uint64_t records_of(const PackResult& result) {
  std::uint64_t records = 0;
  for (const PackResult::File& file : result.files) records += file.records;
  return records;
}

PrepareResult prepare_photographs(Photographs photographs, const PrepareOptions& options) {
  const PackResult train = pack_photographs(std::move(photographs.train), "train", options);
  const PackResult val = pack_photographs(std::move(photographs.val), "val", options);
  const auto name = [&](const PackResult& result, std::string_view split) {
    return result.files.size() == 1 ? result.files.front().rec
                                    : options.out / fmt::format("{}_{}", options.name, split);
  };
  PrepareResult result{.train = name(train, "train"),
                       .val = name(val, "val"),
                       .train_records = records_of(train),
                       .val_records = records_of(val),
                       .problems = train.problems};
  result.already_there = train.taken_up + val.taken_up == result.train_records + result.val_records;
  result.problems.insert(result.problems.end(), val.problems.begin(), val.problems.end());
  return result;
}

}  // namespace

std::vector<std::string> prepare_names() {
  std::vector<std::string> names;
  for (const KnownSet& set : kSets) names.emplace_back(set.name);
  return names;
}

bool is_set_of_photographs(const std::string& name) { return find_set(name).photographs != nullptr; }

PrepareResult prepare(const PrepareOptions& options) {
  const KnownSet& set = find_set(options.name);
  if (options.as_folders && !set.folders)
    throw UsageError(options.name + ": is not unpacked into folders, only coco is");
  if (options.as_folders) return set.folders(options);
  make_folder(options.out);
  remove_abandoned_temporaries(options.out, options.name);
  if (set.photographs) return prepare_photographs(set.photographs(options), options);
  const auto source = set.open(options);
  PrepareResult result;
  result.train = options.out / (options.name + "_train.rec");
  result.val = options.out / (options.name + "_val.rec");
  result.train_records = source->count(Split::train);
  result.val_records = source->count(Split::val);
  const Found val_found = look_at(result.val, *source, Split::val, options);
  const Found train_found = look_at(result.train, *source, Split::train, options);
  result.already_there = val_found == Found::same && train_found == Found::same;
  if (result.already_there) {
    complete_index(result.train);
    complete_index(result.val);
  } else {
    refuse_to_overwrite(result.val, val_found, options);
    refuse_to_overwrite(result.train, train_found, options);
    write_splits(*source, result, options);
    for (const Path& rec : {result.train, result.val}) forget_in_other_sets(rec, (options.out / options.name).string());
  }
  write_class_names(set, options);
  return result;
}

}  // namespace dtrain::data
