// Published sets of photographs, in their archives or unpacked.
#pragma once

#include <map>
#include <span>

#include "pack/pictures.hpp"
#include "sample_source.hpp"

namespace dtrain::data {

struct Photographs {
  Pictures train, val;
};

// PrepareOptions::from is the folder with the published files, or a URL from which they are fetched to options.out.
Photographs open_imagenet(const PrepareOptions& options);
Photographs open_coco(const PrepareOptions& options);
// train2017, val2017 and annotations below options.out, as TensorPack and others read them. Throws UsageError where
// options.from is another folder, in which they are unpacked already.
PrepareResult unpack_coco(const PrepareOptions& options);

// A file of COCO, with the folder that it has at home; elsewhere all are in one.
struct CocoFile {
  const char* folder;
  PublishedFile file;
};
// Where the files are now: a folder of the user, or options.out, to which they were fetched and checked.
Path fetch_coco(std::span<const CocoFile> files, const PrepareOptions& options);
// Drawn instead of photographed.
Photographs open_shapes_detection(const PrepareOptions& options);

// ImageNet's synsets by their ILSVRC2012_ID, from the development kit's meta.mat.
std::map<int, std::string> read_synsets(const SourceBytes& meta);

// A folder with the pictures, or the archive of that name beside it; empty: neither.
Path folder_or_archive(const Path& from, const std::string& folder, const std::string& archive);

}  // namespace dtrain::data
