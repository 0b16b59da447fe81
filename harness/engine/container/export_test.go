package container

// DeviceFiles is tested on a folder that stands for /dev.
var DeviceFiles = deviceFiles
