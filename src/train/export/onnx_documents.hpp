// What marks dtrain's ONNX models: their first bytes, and the names of the JSON documents in their metadata_props.
#pragma once

#include <string>

namespace dtrain::train {

inline constexpr const char* kOnnxPreprocessing = "preprocessing";
inline constexpr const char* kOnnxClasses = "classes";
inline constexpr const char* kOnnxGraph = "dtrain_graph";  // the network, so that dtrain reads its model again

std::string onnx_beginning();  // the version of the format, and dtrain as the program that made the file

}  // namespace dtrain::train
