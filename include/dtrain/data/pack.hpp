// `data pack` and `data import`: pictures, from wherever they are, to PREFIX.rec, PREFIX.idx and PREFIX.lst, as MXNet's
// im2rec makes them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/value_range.hpp>
#include <dtrain/data/image.hpp>

namespace dtrain::data {

// What a COCO file gives a picture. largest: the category of its largest box as its label, counted from 0 in the order
// of the category ids; pictures without a box are left out. boxes: all its objects with their masks (data/objects.hpp),
// of which MXNet's detection iterator reads the boxes; pictures without objects are kept.
enum class CocoLabels { largest, boxes };
std::vector<std::string> coco_label_names();
[[nodiscard]] std::optional<CocoLabels> parse_coco_labels(std::string_view name);

// The files that a picture goes to: PREFIX_train, PREFIX_val or PREFIX_test where the pictures are split, else PREFIX.
enum class PackSplit { train, validation, test };

struct PackItem {
  std::uint64_t id = 0;
  std::vector<float> labels;
  std::string file;                    // relative to the list's root, or what else to call the picture
  std::uint64_t place = 0;             // where the source has it; a folder needs none
  PackSplit split = PackSplit::train;  // of a source that is split already
  std::string objects = {};            // objects_block() of what it shows; empty: its labels are classes
};

struct PackList {
  Path root;
  std::vector<PackItem> items;
  std::vector<std::string> classes;  // names by label, where the source has them
  std::size_t unlabelled = 0;        // pictures that were left out because nothing says what they show
  bool is_split = false;             // the source has folders of training and of validation or test, each with classes
  bool of_folder = false;            // the source is a folder
  bool of_rows = false;              // the source is a list or a table, of which several rows may name one picture
  std::vector<std::string> empty_folders = {};                   // without a picture in them or below them
  std::map<std::string, std::vector<std::string>> skipped = {};  // files that were left out, by reason
  // Of pictures with boxes: objects that were left out, by reason, and pictures that show none.
  std::map<std::string, std::vector<std::string>> objects_left_out = {};
  std::vector<std::string> without_objects = {};
  // Objects that are kept and whose masks lost polygons with fewer than three corners.
  std::vector<std::string> polygons_left_out = {};
  // Objects that are kept and got a mask of no pixel, since others of the source have masks.
  std::vector<std::string> without_mask = {};
  std::string found_elsewhere = {};  // where the pictures are in place of where the source says; empty: they are there
  std::string lost_hint = {};        // advice where none of them is there
  std::vector<std::string> missing = {};  // files that a table of labels names and that are not there
  std::string header_row = {};            // the first row of that table, where it is taken for the names of its columns
};

// Reasons of PackList::skipped that point to a mistake in the source.
inline constexpr const char* kListedTwice = "listed more than once";
inline constexpr const char* kNamedByNoRow = "no row names a picture in it";  // why a folder is left out
inline constexpr const char* kLeadsBack = "a link that leads back to a folder above it";

// Whether files that end so (".tiff") are pictures that dtrain does not read.
bool is_unread_picture(std::string_view ending);

// Where the images come from. automatic: recognised by names and first bytes.
//   folder      every folder below it that holds pictures (kImagesRead, by their endings, else by their first bytes) is
//               a class, numbered and walked in the order of names, as im2rec --recursive does; hidden files and
//               folders, and __MACOSX, are left out; train/ beside val/, validation/ or test/, in lower or upper case
//               and each with classes below it, are splits, also in the only folder of the source; without classes
//               below them they are refused
//   list        a .lst file: id, labels, file, with tabs between; a picture that it names twice counts twice, unless
//               the set is split by shares
//   coco        a COCO JSON file for object detection
//   archive     .tar (also of .tar files, as ImageNet's), .tar.gz and .zip files, in WebDataset's way where they hold
//               .cls files (KEY.jpg beside KEY.cls or KEY.json), else with classes and splits as a folder; pictures
//               are known by their endings
//   cifar10     CIFAR's binary version: a label byte and three planes of 32 x 32
//   cifar100    the same with a coarse label before the fine one, which counts
//   idx         MNIST's: images, and their labels in a second file, which is looked for by its name
//   records     .rec files
enum class PictureFormat { automatic, folder, list, coco, archive, cifar10, cifar100, idx, records };
std::vector<std::string> picture_format_names();
[[nodiscard]] std::optional<PictureFormat> parse_picture_format(std::string_view name);
// By its name: a .lst file, a .json file or an archive. nullopt: another file.
[[nodiscard]] std::optional<PictureFormat> picture_format_by_name(const Path& file);

// The pictures of `source`: a folder, a .lst file or a COCO JSON file, as PictureFormat says; by its name unless
// `format` is list or coco. `root` is where the files are, a folder or an archive; empty: beside the source. Throws
// DataError naming file and line.
PackList list_images(const Path& source, const Path& root, CocoLabels labels = CocoLabels::largest,
                     PictureFormat format = PictureFormat::automatic);

struct PackOptions {
  std::vector<Path> sources = {};  // of folder, list and coco one only
  PictureFormat format = PictureFormat::automatic;
  Path root = {};
  CocoLabels coco_labels = CocoLabels::largest;
  std::optional<Path> labels = {};  // a CSV file with a path and a label in each row; the source is then their folder
  Path out = {};   // PREFIX, to which _train, _val and _test (with a ratio) and _0, _1, ... (with shards) are added
  int resize = 0;  // pixels of the shorter edge; 0: as it is
  std::optional<int> quality = std::nullopt;          // of JPEG files, 1 to 100; nullopt: libjpeg's
  std::optional<Encoding> encoding = Encoding::jpeg;  // nullopt: what each picture has
  int shards = 1;
  bool shuffle = false;  // a split shuffles always
  std::uint64_t seed = 1;
  // Shares of each class that go to PREFIX_train and PREFIX_test; the rest goes to PREFIX_val. train_ratio 1: all but
  // those of the test. nullopt: kUsualTrainShare of those for a folder with several classes, 1 for other sources.
  std::optional<double> train_ratio = std::nullopt;
  double test_ratio = 0;
  int threads = 1;
  // Replace record files, also those of the same content, and remove those of an earlier set of this prefix that the
  // new one lacks.
  bool force = false;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = nullptr;  // on the calling thread
};

inline constexpr double kUsualTrainShare = 0.8;

struct PackRanges {
  ValueRange resize = between(0, kMostShorterEdge), quality = between(1, 100), shards = between(1, 100000);
  ValueRange train_ratio{.low = 0, .high = 1, .low_is_out = true};
  ValueRange test_ratio = from_and_below(0, 1), threads = kThreadRange;
};
inline constexpr PackRanges kPackRanges;

struct PackProblem {
  std::string file, what;
};

struct PackShares {
  double train = 1, validation = 0, test = 0;
};

struct PackResult {
  struct File {
    Path rec;
    std::uint64_t records = 0, bytes = 0;
  };
  std::vector<File> files;
  std::optional<PackShares> shares = std::nullopt;  // of each class; nullopt: nothing was split by shares
  std::vector<std::string> classes;
  std::vector<std::uint64_t> class_pictures = {};  // that the files hold of each class
  std::vector<std::uint64_t> class_objects = {};   // the same of boxes that are no crowds; empty: it has none
  std::vector<PackProblem> problems;               // pictures that could not be read, which no file holds
  std::size_t unlabelled = 0;
  std::map<std::string, std::vector<std::string>> skipped = {};  // files that are no pictures of a class, by reason
  std::vector<std::string> empty_folders = {};                   // that might be meant for classes
  std::size_t trained_classes = 0;            // that have names and of which files of training hold pictures
  std::vector<std::string> untrained = {};    // classes with pictures of which no file of training holds one
  std::vector<std::string> unvalidated = {};  // classes that were split and of which only files of training hold one
  std::map<std::string, std::vector<std::string>> objects_left_out = {};  // as of PackList
  std::vector<std::string> without_objects = {}, polygons_left_out = {}, without_mask = {};
  std::string found_elsewhere = {}, header_row = {};
  std::uint64_t became_jpeg = 0;     // pictures of other encodings that this run stored as JPEG
  std::uint64_t taken_up = 0;        // records that an earlier, stopped run had made
  std::uint64_t several_labels = 0;  // records with several labels that are no boxes: no network trains on these
};

// A picture whose bytes are what the options ask for already (no resize, no quality, the same encoding, upright) is
// taken byte for byte once it decodes; every other one is decoded, turned upright, resized and encoded (JPEG with
// quality 95 unless said, 4:2:0). The files are a pure function of pictures and options, whatever the number of
// threads. A run that was stopped at any point, also by kill -9, is taken up by the same call; PREFIX.pack.json says
// what is done. Files of other content, or of an earlier set of the prefix, stay where they are, unless `force`:
// nothing is packed then. With `force` the earlier set goes once the new one is whole, and a set that was finished is
// made again; one that was interrupted is finished, and what was complete of it stays. Parts that a stopped run of this
// prefix left with other content go before, unless a process writes them. Files that the pictures come from are never
// replaced, but for a set of one file made from itself. Throws UsageError, DataError (the source), Error (disk; another
// run that writes the same files).
PackResult pack(const PackOptions& options);

}  // namespace dtrain::data
