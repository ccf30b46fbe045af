// ImageNet's classification set of 2012, as image-net.org gives it, or with the labels of others who pass it on.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "pack/pack_sources.hpp"
#include "photographs.hpp"

namespace dtrain::data {
namespace {

constexpr PublishedFile kTrain{"ILSVRC2012_img_train.tar", 0, ""}, kVal{"ILSVRC2012_img_val.tar", 0, ""},
    kDevelopmentKit{"ILSVRC2012_devkit_t12.tar.gz", 0, ""};
constexpr const char* kWordsOfEach = "imagenet_2012_validation_synset_labels.txt";
constexpr const char* kSolution = "LOC_val_solution.csv";
constexpr const char* kTruth = "ILSVRC2012_validation_ground_truth.txt";

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) {
    if (!trim(line).empty()) lines.emplace_back(trim(line));
  }
  return lines;
}

// The synset of each validation picture, by its number from 1.
using Answers = std::map<std::int64_t, std::string>;

Answers answers_of_kit(const Path& file) {
  const SourceBytes kit = gunzip(map_source(file));
  const std::map<int, std::string> synsets = read_synsets(file_in_tar(kit, "meta.mat"));
  const SourceBytes truth = file_in_tar(kit, kTruth);
  Answers answers;
  for (const std::string& line : lines_of(text_of(truth.bytes))) {
    const auto synset = synsets.find(static_cast<int>(parse_integer(line).value_or(0)));
    const auto number = static_cast<std::int64_t>(answers.size() + 1);
    if (synset == synsets.end()) throw DataError(fmt::format("{}: line {}: no class {}", truth.name, number, line));
    answers[number] = synset->second;
  }
  return answers;
}

Answers answers_of_words(const Path& file) {
  Answers answers;
  for (const std::string& line : lines_of(read_file(file))) {
    answers[static_cast<std::int64_t>(answers.size() + 1)] = line;
  }
  return answers;
}

// The number in ILSVRC2012_val_00000001.JPEG.
std::int64_t number_of(std::string_view name) {
  const std::string stem = Path(name).stem().string();
  return parse_integer(stem.substr(stem.rfind('_') + 1)).value_or(0);
}

// ImageId,PredictionString: "ILSVRC2012_val_00048981,n03995372 85 1 499 272".
Answers answers_of_solution(const Path& file) {
  Answers answers;
  for (const std::string& line : lines_of(read_file(file))) {
    const std::vector<std::string> cells = split(line, ',');
    if (cells.size() == 2 && number_of(cells[0]) > 0) answers[number_of(cells[0])] = split(cells[1], ' ').front();
  }
  return answers;
}

Answers find_answers(const Path& from) {
  if (std::filesystem::exists(from / kDevelopmentKit.name)) return answers_of_kit(from / kDevelopmentKit.name);
  if (std::filesystem::exists(from / kWordsOfEach)) return answers_of_words(from / kWordsOfEach);
  if (std::filesystem::exists(from / kSolution)) return answers_of_solution(from / kSolution);
  throw DataError(fmt::format("{}: nothing says what the pictures of {} show: looked for {}, {} and {}", from.string(),
                              kVal.name, kDevelopmentKit.name, kWordsOfEach, kSolution),
                  "the development kit is on the same page as the pictures");
}

Pictures open_photos(const Path& photos) {
  if (is_archive(photos)) return open_archives({photos});
  PackList list = list_folder(photos);
  return {std::move(list), make_folder_store(photos)};
}

// Both splits number the classes as the training pictures' folders do.
float label_of(const std::string& synset, const std::vector<std::string>& classes, const std::string& file) {
  const auto found = std::find(classes.begin(), classes.end(), synset);
  if (found != classes.end()) return static_cast<float>(found - classes.begin());
  throw DataError(fmt::format("{}: is of class {}, of which there are no training pictures", file, synset));
}

void label_by_folder(const std::vector<std::string>& classes, PackList& val) {
  for (PackItem& item : val.items) {
    item.labels = {label_of(Path(item.file).parent_path().filename().string(), classes, item.file)};
  }
}

void label_by_answers(const Answers& answers, const std::vector<std::string>& classes, PackList& val) {
  for (PackItem& item : val.items) {
    const auto answer = answers.find(number_of(item.file));
    if (answer == answers.end()) throw DataError(fmt::format("{}: nothing says what it shows", item.file));
    item.labels = {label_of(answer->second, classes, item.file)};
  }
}

Path fetch_files(const PrepareOptions& options) {
  if (options.from.empty()) {
    throw UsageError("ImageNet is only given to people who have an account there",
                     fmt::format("get {}, {} and {} from image-net.org and name their folder with setting 'from'",
                                 kTrain.name, kVal.name, kDevelopmentKit.name));
  }
  if (!is_url(options.from)) return options.from;
  for (const PublishedFile& file : {kDevelopmentKit, kVal, kTrain}) fetch(file, options.from, options);
  return options.out;
}

}  // namespace

Photographs open_imagenet(const PrepareOptions& options) {
  const Path from = fetch_files(options);
  const Path train = folder_or_archive(from, "train", kTrain.name), val = folder_or_archive(from, "val", kVal.name);
  if (train.empty() || val.empty()) {
    throw DataError(fmt::format("{}: no ImageNet here: {} is missing, and so is the folder {}", from.string(),
                                train.empty() ? kTrain.name : kVal.name, train.empty() ? "train" : "val"),
                    "name the folder with the published files");
  }
  Photographs photographs{open_photos(train), open_photos(val)};
  const std::vector<std::string>& classes = photographs.train.list.classes;
  const std::vector<std::string>& folders = photographs.val.list.classes;
  const bool in_folders =
      std::find_first_of(folders.begin(), folders.end(), classes.begin(), classes.end()) != folders.end();
  if (in_folders) {
    label_by_folder(classes, photographs.val.list);
  } else {
    label_by_answers(find_answers(from), classes, photographs.val.list);
  }
  photographs.val.list.classes = classes;
  return photographs;
}

}  // namespace dtrain::data
