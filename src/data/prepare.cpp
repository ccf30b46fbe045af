#include <dtrain/data/prepare.hpp>

#include <fmt/format.h>

#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/record.hpp>

#include "sample_source.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint64_t kProgressEvery = 1000;

struct KnownSet {
  std::string_view name;
  std::unique_ptr<SampleSource> (*open)(const PrepareOptions&);
};
constexpr std::array<KnownSet, 4> kSets{
    {{"cifar10", open_cifar10}, {"fashion-mnist", open_fashion_mnist}, {"mnist", open_mnist}, {"shapes", open_shapes}}};

const KnownSet& find_set(const std::string& name) {
  for (const KnownSet& set : kSets) {
    if (set.name == name) return set;
  }
  const std::vector<std::string> names = prepare_names();
  const auto near = nearest_name(name, names);
  throw UsageError(fmt::format("\"{}\" is no data set that dtrain can prepare", name),
                   near ? fmt::format("did you mean {}?", *near) : fmt::format("one of: {}", join(names, ", ")));
}

// Whether the file holds exactly these samples already. What cannot be read does not.
bool holds(const Path& rec, const SampleSource& source, Split split, Encoding encoding) try {
  if (!std::filesystem::exists(rec) || !std::filesystem::exists(index_path(rec))) return false;
  const RecordFile file(rec);
  if (file.size() != source.count(split)) return false;
  std::size_t position = 0;
  bool same = true;
  source.for_each(split, [&](std::uint8_t label, const Image& image) {
    const Record record = file.read(position);
    same = record.id == position && record.labels.size() == 1 && record.labels[0] == static_cast<float>(label) &&
           text_of(record.payload) == encode_image(image, encoding);
    ++position;
    return same;
  });
  return same;
} catch (const DataError&) {
  return false;
}

void write_records(RecordWriter& writer, const SampleSource& source, Split split, const PrepareOptions& options) {
  const std::uint64_t total = source.count(split);
  std::uint64_t id = 0;
  source.for_each(split, [&](std::uint8_t label, const Image& image) {
    writer.add(id++, static_cast<float>(label), bytes_of(encode_image(image, options.encoding)));
    if (options.progress && (id % kProgressEvery == 0 || id == total)) {
      options.progress(split == Split::train ? "train" : "val", id, total, "records");
    }
    return true;
  });
}

}  // namespace

std::vector<std::string> prepare_names() {
  std::vector<std::string> names;
  for (const KnownSet& set : kSets) names.emplace_back(set.name);
  return names;
}

PrepareResult prepare(const PrepareOptions& options) {
  const KnownSet& set = find_set(options.name);
  make_folder(options.out);
  const auto source = set.open(options);
  PrepareResult result;
  result.train = options.out / (options.name + "_train.rec");
  result.val = options.out / (options.name + "_val.rec");
  result.train_records = source->count(Split::train);
  result.val_records = source->count(Split::val);
  result.already_there = holds(result.val, *source, Split::val, options.encoding) &&
                         holds(result.train, *source, Split::train, options.encoding);
  if (result.already_there) return result;
  RecordWriter train(result.train), val(result.val);
  write_records(train, *source, Split::train, options);
  write_records(val, *source, Split::val, options);
  train.finish();
  val.finish();
  return result;
}

}  // namespace dtrain::data
