// CIFAR-10's binary version, as it is published.
#include <fmt/format.h>

#include <array>
#include <vector>

#include <dtrain/base/error.hpp>

#include "codec/cifar_records.hpp"
#include "remote/published_files.hpp"
#include "sample_source.hpp"

namespace dtrain::data {
namespace {

constexpr const char* kHome = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz";
constexpr PublishedFile kArchive{"cifar-10-binary.tar.gz", 170052171,
                                 "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"};
constexpr const char* kFolder = "cifar-10-batches-bin";
constexpr std::array kTrainFiles{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                                 "data_batch_5.bin"};
constexpr std::array kValFiles{"test_batch.bin"};

constexpr int kClasses = 10;
constexpr std::size_t kRecord = cifar_record(1), kRecordsPerFile = 10000;

class Cifar10 : public SampleSource {
 public:
  // `open` gives the bytes of a file by its name.
  template <typename Open>
  explicit Cifar10(const Open& open) {
    for (const char* name : kTrainFiles) train_.push_back(checked(open(name)));
    for (const char* name : kValFiles) val_.push_back(checked(open(name)));
  }

  std::uint64_t count(Split split) const override { return files(split).size() * kRecordsPerFile; }

  void for_each(Split split, const Take& take) const override {
    Image image;
    for (const SourceBytes& file : files(split)) {
      for (std::size_t at = 0; at < file.bytes.size(); at += kRecord) {
        const auto label = static_cast<std::uint8_t>(file.bytes[at]);
        if (label >= kClasses) {
          throw DataError(fmt::format("{}: byte {}: label {} is not below {}", file.name, at, label, kClasses),
                          "the file is damaged, or not of CIFAR-10's binary version");
        }
        cifar_image(file.bytes.subspan(at, kRecord).subspan(1), image);
        if (!take(label, image)) return;
      }
    }
  }

 private:
  static SourceBytes checked(SourceBytes file) {
    constexpr std::size_t expected = kRecordsPerFile * kRecord;
    if (file.bytes.size() == expected) return file;
    throw DataError(
        fmt::format("{}: has {} bytes, not {}", file.name, file.bytes.size(), expected),
        file.bytes.size() < expected ? "it was cut short: copy or unpack it again" : "is it the right file?");
  }
  const std::vector<SourceBytes>& files(Split split) const { return split == Split::train ? train_ : val_; }

  std::vector<SourceBytes> train_, val_;
};

std::unique_ptr<SampleSource> open_archive(const Path& path) {
  const SourceBytes tar = gunzip(map_source(path));
  return std::make_unique<Cifar10>([&](const char* name) { return file_in_tar(tar, name); });
}

std::unique_ptr<SampleSource> open_folder(const Path& folder) {
  return std::make_unique<Cifar10>([&](const char* name) {
    if (!std::filesystem::exists(folder / name)) {
      throw DataError(fmt::format("{}: is missing beside the other CIFAR-10 files", (folder / name).string()),
                      "copy or unpack the whole set");
    }
    return map_source(folder / name);
  });
}

bool holds_any(const Path& folder) {
  for (const char* name : kTrainFiles) {
    if (std::filesystem::exists(folder / name)) return true;
  }
  return std::filesystem::exists(folder / kValFiles[0]);
}

[[noreturn]] void fail_without_files(const Path& from) {
  const bool python = std::filesystem::exists(from / "data_batch_1") ||
                      std::filesystem::exists(from / "cifar-10-batches-py" / "data_batch_1");
  throw DataError(
      fmt::format("{}: no CIFAR-10 here: looked for {} ... {} and {}, also in {}, and for {}", from.string(),
                  kTrainFiles.front(), kTrainFiles.back(), kValFiles[0], kFolder, kArchive.name),
      python ? fmt::format("this is the Python version; dtrain reads the binary one: {}", kHome)
             : fmt::format("name the folder with the files, or leave setting 'from' away to download {}", kHome));
}

}  // namespace

std::unique_ptr<SampleSource> open_cifar10(const PrepareOptions& options) {
  if (options.from.empty() || is_url(options.from)) {
    return open_archive(fetch(kArchive, options.from.empty() ? kHome : options.from, options));
  }
  const Path from = options.from;
  if (std::filesystem::is_regular_file(from)) return open_archive(from);
  for (const Path& folder : {from, from / kFolder}) {
    if (holds_any(folder)) return open_folder(folder);
  }
  if (std::filesystem::exists(from / kArchive.name)) return open_archive(from / kArchive.name);
  fail_without_files(from);
}

}  // namespace dtrain::data
