#include <fmt/format.h>

#include <cmath>
#include <map>

#include <dtrain/base/text.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/record.hpp>

#include "command.hpp"
#include "data_options.hpp"

namespace dtrain::cli {
namespace {

struct ListCommand {
  Path file;
};

void bind(OptionSet& set, ListCommand& options) {
  set.group("What").add("FILE", options.file, "record file (.rec)").required = true;
}

struct Contents {
  std::size_t records = 0;
  std::uint64_t bytes = 0;                       // payloads together
  std::map<std::int64_t, std::size_t> classes;   // records by label
  std::map<std::string, std::size_t> encodings;  // records by encoding
  data::Image first;                             // size of the first image; pixels unused
};

std::string_view encoding_of(ByteView payload) {
  const auto encoding = data::detect_encoding(payload);
  return encoding ? data::encoding_name(*encoding) : "unknown";
}

Contents read_contents(const data::RecordFile& file) {
  Contents contents;
  contents.records = file.size();
  for (std::size_t i = 0; i < file.size(); ++i) {
    const data::Record record = file.read(i);
    contents.bytes += record.payload.size();
    if (record.labels.size() == 1) ++contents.classes[std::llround(record.labels[0])];
    ++contents.encodings[std::string(encoding_of(record.payload))];
    if (i == 0) data::decode_image(record.payload, data::kStoredChannels, contents.first);
  }
  return contents;
}

Json document(const Path& path, const Contents& contents) {
  Json classes = Json::object(), encodings = Json::object();
  for (const auto& [label, count] : contents.classes) classes[std::to_string(label)] = std::uint64_t{count};
  for (const auto& [name, count] : contents.encodings) encodings[name] = std::uint64_t{count};
  return Json::object({{"schema", "dtrain.data-ls/1"},
                       {"file", path.string()},
                       {"records", std::uint64_t{contents.records}},
                       {"payload_bytes", contents.bytes},
                       {"image_shape", Json::array({contents.first.c, contents.first.h, contents.first.w})},
                       {"encodings", encodings},
                       {"classes", classes}});
}

void answer_table(const Path& path, const Contents& contents, Console& console) {
  console.answer(fmt::format("{}: {} records, {}", path.string(), contents.records, format_bytes(contents.bytes)));
  console.answer(fmt::format("first image: {}x{}x{}", contents.first.c, contents.first.h, contents.first.w));
  for (const auto& [name, count] : contents.encodings) console.answer(fmt::format("encoding {}: {}", name, count));
  std::size_t largest = 1;
  for (const auto& [label, count] : contents.classes) largest = std::max(largest, count);
  for (const auto& [label, count] : contents.classes) {
    console.answer(fmt::format("class {:>4} {:>8}  {}", label, count, std::string(40 * count / largest, '#')));
  }
}

ExitCode act(const ListCommand& options, const OptionSet&, Console& console) {
  require_records(options.file);
  const Contents contents = read_contents(data::RecordFile(options.file));
  if (console.json()) {
    console.answer_json(document(options.file, contents));
  } else {
    answer_table(options.file, contents, console);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_data_ls() {
  auto command = make_command<ListCommand>("data ls", "what a record file holds: records, classes, encodings", act);
  command->examples = {"dtrain data ls d/shapes_train.rec"};
  command->see_also = {"data verify", "data bench"};
  return command;
}

}  // namespace dtrain::cli
