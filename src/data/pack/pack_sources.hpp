// What data pack can start from, each as a list of pictures.
#pragma once

#include <string_view>

#include <dtrain/data/pack.hpp>

namespace dtrain::data {

PackList list_folder(const Path& folder);
PackList parse_list(std::string_view text, const Path& lst, const Path& root);
// "path,label" rows, with or without a header; paths are below `root`.
PackList parse_labels(std::string_view text, const Path& csv, const Path& root);
// Counts the pictures that no row of such a table names, in the folders of those that rows name.
void count_unlabelled(PackList& list);
// The object detection format of cocodataset.org: images, annotations with bbox and category_id, categories.
PackList parse_coco(std::string_view text, const Path& json, const Path& root, CocoLabels labels);

}  // namespace dtrain::data
